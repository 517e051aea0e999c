# External Secrets Operator, and the store that it reads Infisical through.

include "root" {
  path = find_in_parent_folders("root.hcl")
}

terraform {
  source = "../../modules//engine"
}

dependencies {
  paths = ["../2-platform"]
}
