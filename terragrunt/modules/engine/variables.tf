variable "cluster" {
  description = "The cluster's description, as in cluster.yaml."
  # infisical is the word none or an object with url, slug, environment and path; castle has checked it.
  type = object({ secrets = object({ infisical = any }) })
}

variable "charts" {
  description = "Folder that holds a folder for each chart."
  type        = string
}

variable "infisical_client_id" {
  description = "Client id of the machine identity that reads the cluster's secrets."
  type        = string
  sensitive   = true
}

variable "infisical_client_secret" {
  description = "Client secret of that identity."
  type        = string
  sensitive   = true
}

variable "adopt" {
  description = "The Secret of the machine identity as namespace/name, where it is there already; castle looks."
  type        = list(string)
  default     = []
}
