output "it" {
  value = "another"
}
