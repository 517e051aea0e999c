resource "terraform_data" "former" {
  input = "the same"
}
