resource "terraform_data" "updated" {
  input = "one"
}

resource "terraform_data" "replaced" {
  triggers_replace = "one"
}

resource "terraform_data" "triggered" {
  lifecycle {
    replace_triggered_by = [terraform_data.updated]
  }
}

resource "terraform_data" "requested" {}

resource "terraform_data" "tainted" {}

resource "terraform_data" "deleted" {}

resource "terraform_data" "forgotten" {}

resource "terraform_data" "kept" {}
