# An image that the description names. A file of its own: an instance that is there keeps the image that it was made from.

mock_provider "aws" {}

variables {
  cluster = {
    name    = "cloud"
    network = { subnet = "10.60.0.0/16" }
    aws = {
      region       = "eu-central-1"
      zones        = { "eu-central-1a" = "10.60.0.0/20", "eu-central-1b" = "10.60.16.0/20", "eu-central-1c" = "10.60.32.0/20" }
      adminCIDRs   = ["203.0.113.7/32"]
      architecture = "arm64"
      ami          = "ami-0123456789abcdef0"
    }
    talos = { version = "v1.13.9" }
    nodes = [
      { name = "cloud-cp-1", role = "controlplane", address = "10.60.0.11", instanceType = "m7i.large", disks = [{ size = 40 }] },
    ]
  }
}

run "named" {
  assert {
    condition     = aws_instance.node["cloud-cp-1"].ami == "ami-0123456789abcdef0" && length(data.aws_ami.talos) == 0
    error_message = "the image that is named is not taken"
  }
}
