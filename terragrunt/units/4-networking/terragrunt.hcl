# MetalLB and the addresses that it hands out. It needs no secret, so it does not wait for the engine.

include "root" {
  path = find_in_parent_folders("root.hcl")
}

terraform {
  source = "../../modules//networking"
}

dependencies {
  paths = ["../2-platform"]
}
