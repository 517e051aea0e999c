# Five VMs as a cluster has them, and one with everything else that a VM resource may say.
terraform {
  required_providers {
    proxmox = {
      source = "bpg/proxmox"
    }
  }
}

provider "proxmox" {}

variable "memory" {
  type    = number
  default = 8192
}

variable "disk" {
  type    = number
  default = 40
}

# How often a clone is tried that Proxmox refuses or that ends with "got timeout", after 10 s, 20 s, 40 s, …
variable "retries" {
  type    = number
  default = 1
}

locals {
  nodes = {
    cp-1     = { id = 521, address = "192.168.77.211" }
    cp-2     = { id = 522, address = "192.168.77.212" }
    cp-3     = { id = 523, address = "192.168.77.213" }
    worker-1 = { id = 524, address = "192.168.77.214" }
    worker-2 = { id = 525, address = "192.168.77.215" }
  }
}

resource "proxmox_virtual_environment_vm" "node" {
  for_each = local.nodes

  vm_id           = each.value.id
  name            = "sandbox-${each.key}"
  node_name       = "pve"
  tags            = ["castle", "sandbox"]
  on_boot         = true
  started         = true
  stop_on_destroy = true

  clone {
    vm_id        = 900
    datastore_id = "local-lvm"
    full         = true
    retries      = var.retries
  }

  agent {
    enabled = false
  }

  cpu {
    cores = 4
    type  = "host"
  }

  memory {
    dedicated = var.memory
  }

  disk {
    interface    = "scsi0"
    datastore_id = "local-lvm"
    size         = var.disk
  }

  network_device {
    bridge = "vmbr0"
  }

  operating_system {
    type = "l26"
  }

  initialization {
    datastore_id = "local-lvm"

    dns {
      servers = ["192.168.77.1", "9.9.9.9"]
    }

    ip_config {
      ipv4 {
        address = "${each.value.address}/24"
        gateway = "192.168.77.1"
      }
    }
  }

  # An imported VM has no clone in its state, and a change of that would replace it.
  lifecycle {
    ignore_changes = [clone]
  }
}

resource "proxmox_virtual_environment_vm" "odd" {
  vm_id           = 530
  name            = "odd"
  description     = "with EFI, an agent and a second disk"
  node_name       = "pve"
  tags            = ["odd"]
  on_boot         = false
  machine         = "q35"
  bios            = "ovmf"
  scsi_hardware   = "virtio-scsi-single"
  stop_on_destroy = true

  clone {
    vm_id = 900
  }

  agent {
    enabled = true
    timeout = "30s"
  }

  cpu {
    cores = 2
    type  = "x86-64-v2-AES"
  }

  memory {
    dedicated = 2048
  }

  efi_disk {
    datastore_id = "local-lvm"
    type         = "4m"
  }

  disk {
    interface    = "scsi0"
    datastore_id = "local-lvm"
    size         = 20
    discard      = "on"
    iothread     = true
    ssd          = true
  }

  disk {
    interface    = "scsi1"
    datastore_id = "local-lvm"
    size         = 100
  }

  network_device {
    bridge = "vmbr0"
  }

  serial_device {}

  initialization {
    datastore_id = "local-lvm"

    ip_config {
      ipv4 {
        address = "192.168.77.230/24"
        gateway = "192.168.77.1"
      }
    }
  }
}

output "odd_addresses" {
  value = proxmox_virtual_environment_vm.odd.ipv4_addresses
}
