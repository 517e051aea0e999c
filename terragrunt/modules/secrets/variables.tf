variable "cluster" {
  description = "The cluster's description, as in cluster.yaml."
  type        = object({ secrets = object({ infisical = any }) })
}

variable "inventory" {
  description = "Names of the cluster's secrets and where each came from, never values."
  type = list(object({
    name   = string
    source = string
  }))
}
