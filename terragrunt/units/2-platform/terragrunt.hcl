# The machines, which are made unless they are there already, and Talos on them: a Kubernetes API that answers at the virtual IP.

include "root" {
  path   = find_in_parent_folders("root.hcl")
  expose = true
}

terraform {
  source = include.root.locals.makes_machines ? "../../modules//platform-proxmox" : "../../modules//platform-talos"
}

dependencies {
  paths = ["../1-secrets"]
}
