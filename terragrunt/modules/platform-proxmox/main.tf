locals {
  prefix_length = split("/", var.cluster.network.subnet)[1]
  templates     = coalesce(var.cluster.proxmox.templates, {})
}

# One VM for each node: a clone of a Talos "nocloud" template, which takes its static address from the cloud-init
# drive, so that nothing depends on DHCP.
resource "proxmox_virtual_environment_vm" "node" {
  for_each = { for node in var.cluster.nodes : node.name => node }

  name      = each.key
  node_name = each.value.host
  vm_id     = each.value.vmID

  # castle knows the cluster's VMs by castle-NAME. Proxmox sorts tags; unsorted ones would differ for ever.
  tags = sort(["castle", "castle-${var.cluster.name}", each.value.role])

  on_boot = true

  # A change that waits for a restart leaves the machine running: castle drains the node before, and restarts one at a time.
  reboot_after_update = false

  # No agent runs in Talos unless an extension brings it, and a shutdown request to a node without etcd quorum hangs.
  stop_on_destroy = true

  # What the VM's configuration does not name may be somebody else's, whatever id is in its name. The provider's default removes it.
  delete_unreferenced_disks_on_destroy = false

  timeout_clone       = 900
  timeout_create      = 900
  timeout_start_vm    = 300
  timeout_stop_vm     = 120
  timeout_shutdown_vm = 120

  agent {
    enabled = false
  }

  clone {
    # The template of the node's own host, or the one that there is for all. From another host's, Proxmox clones to shared storage only.
    vm_id     = lookup(local.templates, each.value.host, var.cluster.proxmox.template)
    node_name = contains(keys(local.templates), each.value.host) ? each.value.host : coalesce(var.cluster.proxmox.templateHost, each.value.host)
    # Proxmox refuses a storage for a linked clone, which is where its template is.
    datastore_id = var.cluster.proxmox.linkedClones ? null : var.cluster.proxmox.storage
    full         = !var.cluster.proxmox.linkedClones
    # A clone that meets the template's lock fails. The provider tries again after 10 and 20 s where the host has refused it, or says "got
    # timeout"; what a shared storage's lock says instead, castle knows, and has the machines applied again.
    retries = 3
  }

  cpu {
    cores = each.value.cores
    type  = "host"
  }

  memory {
    dedicated = each.value.memory
  }

  dynamic "disk" {
    for_each = each.value.disks

    content {
      interface    = "scsi${disk.key}"
      datastore_id = var.cluster.proxmox.storage
      size         = disk.value.size
    }
  }

  network_device {
    bridge  = var.cluster.proxmox.bridge
    vlan_id = var.cluster.proxmox.vlan
  }

  operating_system {
    type = "l26"
  }

  initialization {
    datastore_id = var.cluster.proxmox.storage

    dns {
      servers = var.cluster.network.dns
    }

    ip_config {
      ipv4 {
        address = "${each.value.address}/${local.prefix_length}"
        gateway = var.cluster.network.gateway
      }
    }
  }

  lifecycle {
    # A newer template is for nodes to come. Those that run are upgraded by Talos, not replaced all at once. The others have
    # what their template gave them, which the provider sees only in a VM that it imports, and would restart it for.
    ignore_changes = [
      clone, agent, keyboard_layout, scsi_hardware, acpi, bios, boot_order, efi_disk, kvm_arguments, machine, serial_device, smbios, tablet_device, tpm_state, vga,
    ]
  }
}

# Of no consequence for a VM that is in the state.
import {
  for_each = var.adopt
  to       = proxmox_virtual_environment_vm.node[each.key]
  id       = each.value
}
