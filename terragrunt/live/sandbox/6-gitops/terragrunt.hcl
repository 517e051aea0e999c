# Flux, its source and its keys: from here on the cluster follows its Git repository.

include "root" {
  path = find_in_parent_folders("root.hcl")
}

terraform {
  source = "../../../modules//gitops"
}

dependencies {
  paths = ["../3-engine"]
}
