# Three groups: what all nodes let in, what control planes let in besides, and the load balancer. A rule names where it lets in from:
# another of these groups, or an administrator's addresses. docs.siderolabs.com, "Talos network connectivity", has the ports.

resource "aws_security_group" "node" {
  name        = "${local.name}-node"
  description = "Nodes of the cluster ${local.name}"
  vpc_id      = aws_vpc.cluster.id
  # The one group of an instance that the cloud controller manager opens for its load balancers has the cluster's tag.
  tags = merge(local.tags, { Name = "${local.name}-node" })
}

resource "aws_security_group" "controlplane" {
  name        = "${local.name}-controlplane"
  description = "Control planes of the cluster ${local.name}"
  vpc_id      = aws_vpc.cluster.id
  tags        = { castle = local.name, Name = "${local.name}-controlplane" }
}

resource "aws_security_group" "api" {
  name        = "${local.name}-api"
  description = "The load balancer of the APIs of the cluster ${local.name}"
  vpc_id      = aws_vpc.cluster.id
  tags        = { castle = local.name, Name = "${local.name}-api" }
}

locals {
  groups = {
    node         = aws_security_group.node.id
    controlplane = aws_security_group.controlplane.id
    api          = aws_security_group.api.id
  }

  # Between nodes, and from the load balancer to control planes. into: {port: {from, protocol, first, last}}
  between = {
    "kubelet"        = { into = "node", from = "node", protocol = "tcp", first = 10250, last = 10250 }
    "flannel"        = { into = "node", from = "node", protocol = "udp", first = 4789, last = 4789 }
    "talos"          = { into = "node", from = "controlplane", protocol = "tcp", first = 50000, last = 50000 }
    "trustd"         = { into = "controlplane", from = "node", protocol = "tcp", first = 50001, last = 50001 }
    "etcd"           = { into = "controlplane", from = "controlplane", protocol = "tcp", first = 2379, last = 2380 }
    "kubernetes"     = { into = "controlplane", from = "node", protocol = "tcp", first = 6443, last = 6443 }
    "kubernetes-api" = { into = "controlplane", from = "api", protocol = "tcp", first = 6443, last = 6443 }
    "talos-api"      = { into = "controlplane", from = "api", protocol = "tcp", first = 50000, last = 50000 }
  }

  # What an administrator reaches. Talos on each node itself as well: a machine without a configuration has no other that would pass it on.
  administered = merge([for cidr in var.cluster.aws.adminCIDRs : {
    "kubernetes ${cidr}" = { into = "api", cidr = cidr, port = 6443 }
    "talos ${cidr}"      = { into = "api", cidr = cidr, port = 50000 }
    "machine ${cidr}"    = { into = "node", cidr = cidr, port = 50000 }
  }]...)
}

resource "aws_vpc_security_group_ingress_rule" "between" {
  for_each = local.between

  security_group_id            = local.groups[each.value.into]
  referenced_security_group_id = local.groups[each.value.from]
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.first
  to_port                      = each.value.last
  description                  = each.key
  tags                         = { castle = local.name }
}

resource "aws_vpc_security_group_ingress_rule" "administrator" {
  for_each = local.administered

  security_group_id = local.groups[each.value.into]
  cidr_ipv4         = each.value.cidr
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
  description       = each.key
  tags              = { castle = local.name }
}

# A node asks the load balancer by its public name, and so comes there from its own public address, which no group stands for.
resource "aws_vpc_security_group_ingress_rule" "node" {
  for_each = local.nodes

  security_group_id = aws_security_group.api.id
  cidr_ipv4         = "${aws_instance.node[each.key].public_ip}/32"
  ip_protocol       = "tcp"
  from_port         = 6443
  to_port           = 6443
  description       = "kubernetes ${each.key}"
  tags              = { castle = local.name }
}

# Out: nodes to the world, for images, time and discovery; the load balancer to the control planes alone.
resource "aws_vpc_security_group_egress_rule" "node" {
  security_group_id = aws_security_group.node.id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
  tags              = { castle = local.name }
}

resource "aws_vpc_security_group_egress_rule" "api" {
  for_each = toset(["6443", "50000"])

  security_group_id            = aws_security_group.api.id
  referenced_security_group_id = aws_security_group.controlplane.id
  ip_protocol                  = "tcp"
  from_port                    = tonumber(each.key)
  to_port                      = tonumber(each.key)
  tags                         = { castle = local.name }
}
