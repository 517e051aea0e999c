# Every secret that the cluster needs is there; the values themselves go by environment only.

include "root" {
  path = find_in_parent_folders("root.hcl")
}

terraform {
  source = "../../modules//secrets"
}
