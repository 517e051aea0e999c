# Longhorn and the default StorageClass.

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
  chart = "longhorn"
}
