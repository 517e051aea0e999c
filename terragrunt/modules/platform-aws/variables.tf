variable "cluster" {
  description = "The cluster's description, as in cluster.yaml."
  type = object({
    name = string
    network = object({
      subnet = string
    })
    aws = object({
      region       = string
      zones        = map(string)
      adminCIDRs   = list(string)
      ami          = optional(string)
      architecture = string
    })
    talos = object({
      version = string
    })
    nodes = list(object({
      name         = string
      role         = string
      address      = string
      instanceType = string
      disks        = list(object({ size = number }))
    }))
  })
}
