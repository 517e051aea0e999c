variable "cluster" {
  description = "The cluster's description, as in cluster.yaml."
  type = object({
    storage = object({
      replicas     = number
      dataPath     = string
      storageClass = string
    })
  })
}

variable "charts" {
  description = "Folder that holds a folder for each chart."
  type        = string
}

variable "chart" {
  description = "Name of the chart: Longhorn's, or the one of its shape."
  type        = string
}
