# A chart of Longhorn's shape: what it installs can be waited for, its volumes hold nothing.

include "root" {
  path = find_in_parent_folders("root.hcl")
}

terraform {
  source = "../../../modules//storage"
}

dependencies {
  paths = ["../2-platform"]
}

inputs = {
  chart = "longhorn-sandbox"
}
