output "names" {
  description = "Names of the secrets that the cluster was created with."
  value       = terraform_data.inventory.output
}
