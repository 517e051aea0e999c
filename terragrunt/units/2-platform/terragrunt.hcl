# The virtual machines, and Talos on them: a Kubernetes API that answers at the virtual IP.

include "root" {
  path = find_in_parent_folders("root.hcl")
}

terraform {
  source = "../../modules//platform-proxmox"
}

dependencies {
  paths = ["../1-secrets"]
}
