resource "terraform_data" "updated" {
  input = "another"
}

resource "terraform_data" "replaced" {
  triggers_replace = "another"
}

resource "terraform_data" "triggered" {
  lifecycle {
    replace_triggered_by = [terraform_data.updated]
  }
}

resource "terraform_data" "requested" {}

resource "terraform_data" "tainted" {}

removed {
  from = terraform_data.forgotten

  lifecycle {
    destroy = false
  }
}

resource "terraform_data" "kept" {}

resource "terraform_data" "imported" {}

import {
  to = terraform_data.imported
  id = "an-id"
}

data "terraform_remote_state" "read" {
  backend    = "local"
  config     = { path = "nowhere.tfstate" }
  depends_on = [terraform_data.updated]
}
