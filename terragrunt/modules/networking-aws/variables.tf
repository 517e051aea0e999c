variable "cluster" {
  description = "The cluster's description, as in cluster.yaml."
  type = object({
    name = string
  })
}

variable "charts" {
  description = "Folder that holds a folder for each chart."
  type        = string
}
