resource "terraform_data" "it" {
  input = "the same"
}

moved {
  from = terraform_data.former
  to   = terraform_data.it
}
