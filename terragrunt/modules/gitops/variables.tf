variable "cluster" {
  description = "The cluster's description, as in cluster.yaml."
  type = object({
    gitops = object({
      url     = string
      branch  = string
      path    = string
      tenancy = string
    })
    secrets = object({ infisical = any })
  })
}

variable "charts" {
  description = "Folder that holds a folder for each chart."
  type        = string
}

variable "inventory" {
  description = "Names of the cluster's secrets, never values."
  type        = list(object({ name = string }))
}
