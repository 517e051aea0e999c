variable "cluster" {
  description = "The cluster's description, as in cluster.yaml."
  type = object({
    nodes = list(object({
      name    = string
      role    = string
      address = string
    }))
  })
}
