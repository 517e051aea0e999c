# Longhorn and the default StorageClass; in a sandbox a chart of Longhorn's shape, whose volumes hold nothing.

include "root" {
  path   = find_in_parent_folders("root.hcl")
  expose = true
}

terraform {
  source = "../../modules//storage"
}

dependencies {
  paths = ["../2-platform"]
}

inputs = {
  chart = include.root.locals.cluster.platform == "sandbox" ? "longhorn-sandbox" : "longhorn"
}
