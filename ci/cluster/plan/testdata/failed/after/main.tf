resource "terraform_data" "fine" {
  input = "fine"
}

resource "terraform_data" "broken" {
  lifecycle {
    precondition {
      condition     = length(path.module) > 1000
      error_message = "This cannot be."
    }
  }
}
