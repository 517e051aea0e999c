resource "terraform_data" "node" {
  for_each = toset(["worker-1", "cp-1", "cp-2"])
  input    = each.key
}

output "addresses" {
  value = [for node in terraform_data.node : node.output]
}
