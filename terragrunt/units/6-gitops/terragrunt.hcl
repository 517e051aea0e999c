# Flux, its source and its keys: from here on the cluster follows its Git repository.

include "root" {
  path = find_in_parent_folders("root.hcl")
}

terraform {
  source = "../../modules//gitops"
}

# Flux is installed beside the engine; the module waits for the engine's store where it needs it. On the way back Flux's
# secrets need the engine from start to end.
dependencies {
  paths = get_terraform_command() == "destroy" ? ["../2-platform", "../3-engine"] : ["../2-platform"]
}
