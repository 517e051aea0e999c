variable "inventory" {
  description = "Names of the cluster's secrets and where each came from, never values."
  type = list(object({
    name   = string
    source = string
  }))
}
