locals {
  # The Kubernetes API, and Talos's, which passes on to any node.
  ports = { kubernetes = 6443, talos = 50000 }
}

resource "aws_lb" "api" {
  name                             = "${local.name}-api"
  load_balancer_type               = "network"
  internal                         = false
  security_groups                  = [aws_security_group.api.id]
  subnets                          = [for subnet in aws_subnet.zone : subnet.id]
  enable_cross_zone_load_balancing = true
  tags                             = { castle = local.name, Name = "${local.name}-api" }

  # An address of the internet needs the VPC's way there.
  depends_on = [aws_internet_gateway.cluster]
}

resource "aws_lb_target_group" "api" {
  for_each = local.ports

  name        = "${local.name}-${each.value}"
  vpc_id      = aws_vpc.cluster.id
  port        = each.value
  protocol    = "TCP"
  target_type = "instance"
  # A control plane that asks the load balancer may be sent back to itself, which fails where it sees its own address as the client's.
  preserve_client_ip   = false
  deregistration_delay = 30
  tags                 = { castle = local.name, Name = "${local.name}-${each.value}" }

  # Talos lets nobody ask the API server's health who has no certificate, so that a connection has to do.
  health_check {
    protocol            = "TCP"
    port                = "traffic-port"
    interval            = 10
    healthy_threshold   = 2
    unhealthy_threshold = 2
  }
}

resource "aws_lb_target_group_attachment" "api" {
  for_each = { for pair in setproduct(keys(local.ports), local.control_planes) : "${pair[0]}/${pair[1]}" => { port = pair[0], node = pair[1] } }

  target_group_arn = aws_lb_target_group.api[each.value.port].arn
  target_id        = aws_instance.node[each.value.node].id
}

resource "aws_lb_listener" "api" {
  for_each = local.ports

  load_balancer_arn = aws_lb.api.arn
  port              = each.value
  protocol          = "TCP"
  tags              = { castle = local.name }

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.api[each.key].arn
  }
}
