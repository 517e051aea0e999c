variable "cluster" {
  description = "The cluster's description, as in cluster.yaml."
  # infisical is the word none or an object with url, slug, environment, the folders and namespaces; castle has checked it.
  type = object({ secrets = object({ infisical = any }) })
}

variable "charts" {
  description = "Folder that holds a folder for each chart."
  type        = string
}

variable "infisical_flux_client_id" {
  description = "Client id of the machine identity that reads Flux's secrets, and nothing else."
  type        = string
  sensitive   = true
}

variable "infisical_flux_client_secret" {
  description = "Client secret of that identity."
  type        = string
  sensitive   = true
}

variable "infisical_workloads_client_id" {
  description = "Client id of the machine identity that reads the workloads' secrets, and nothing else."
  type        = string
  sensitive   = true
}

variable "infisical_workloads_client_secret" {
  description = "Client secret of that identity."
  type        = string
  sensitive   = true
}

variable "adopt" {
  description = "The Secrets of the machine identities as namespace/name, where they are there already; castle looks."
  type        = list(string)
  default     = []
}
