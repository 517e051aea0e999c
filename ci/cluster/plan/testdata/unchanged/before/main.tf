resource "terraform_data" "it" {
  input = "the same"
}

output "it" {
  value = terraform_data.it.output
}
