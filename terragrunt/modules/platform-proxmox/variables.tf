variable "cluster" {
  description = "The cluster's description, as in cluster.yaml."
  type = object({
    name = string
    network = object({
      subnet  = string
      gateway = string
      dns     = list(string)
    })
    proxmox = object({
      template     = optional(number)
      templateHost = optional(string)
      templates    = optional(map(number))
      linkedClones = optional(bool, false)
      storage      = string
      bridge       = string
      vlan         = optional(number)
    })
    nodes = list(object({
      name    = string
      role    = string
      address = string
      vmID    = number
      host    = string
      cores   = number
      memory  = number
      disks   = list(object({ size = number }))
    }))
  })
}

variable "adopt" {
  description = "VMs that are there already, as host/id by node; castle finds them."
  type        = map(string)
  default     = {}
}
