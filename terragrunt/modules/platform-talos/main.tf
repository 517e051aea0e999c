# A record of each machine: they are there already, and castle makes and removes none. What a machine was known by when it joined is what
# it is found by when it leaves, whatever cluster.yaml says of it by then.
resource "terraform_data" "node" {
  for_each = { for node in var.cluster.nodes : node.name => node }

  input            = { role = each.value.role, address = each.value.address }
  triggers_replace = { role = each.value.role, address = each.value.address }
}
