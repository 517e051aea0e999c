locals {
  names = sort([for secret in var.inventory : secret.name])

  # What the layers after this one take. castle has looked for these and more, and says where each belongs; this holds
  # for whoever runs the layers without it.
  needed = concat(
    var.cluster.secrets.infisical == "none" ? ["TALOS_SECRETS"] : [
      for identity in ["", "FLUX_", "WORKLOADS_"] : "INFISICAL_${identity}CLIENT_ID"
    ],
    ["GITOPS_USERNAME", "GITOPS_TOKEN", "SOPS_AGE_KEY"],
  )
}

# The inventory of the cluster's secrets, so that the state tells which there were. What stops here stops everything.
resource "terraform_data" "inventory" {
  input = local.names

  lifecycle {
    precondition {
      condition     = length(setsubtract(local.needed, local.names)) == 0
      error_message = "Missing secrets: ${join(", ", sort(setsubtract(local.needed, local.names)))}. Add them to the SOPS file or to Infisical."
    }
  }
}
