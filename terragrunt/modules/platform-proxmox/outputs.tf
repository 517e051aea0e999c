output "vm_ids" {
  description = "Ids of the virtual machines, by the node's name."
  value       = { for name, vm in proxmox_virtual_environment_vm.node : name => vm.vm_id }
}
