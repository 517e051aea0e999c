output "it" {
  value = "one"
}
