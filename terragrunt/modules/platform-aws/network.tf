resource "aws_vpc" "cluster" {
  cidr_block           = var.cluster.network.subnet
  enable_dns_support   = true
  enable_dns_hostnames = true
  tags                 = merge(local.tags, { Name = local.name })
}

# AWS makes one for whatever names none. It lets nothing in and nothing out.
resource "aws_default_security_group" "closed" {
  vpc_id = aws_vpc.cluster.id
  tags   = { castle = local.name, Name = "${local.name}-unused" }
}

resource "aws_internet_gateway" "cluster" {
  vpc_id = aws_vpc.cluster.id
  tags   = merge(local.tags, { Name = local.name })
}

resource "aws_subnet" "zone" {
  for_each = var.cluster.aws.zones

  vpc_id            = aws_vpc.cluster.id
  availability_zone = each.key
  cidr_block        = each.value
  # The role is what the cloud controller manager finds the subnets of public load balancers by.
  tags = merge(local.tags, { Name = "${local.name}-${each.key}", "kubernetes.io/role/elb" = "1" })
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.cluster.id
  tags   = merge(local.tags, { Name = local.name })
}

resource "aws_route" "out" {
  route_table_id         = aws_route_table.public.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.cluster.id
}

resource "aws_route_table_association" "zone" {
  for_each = aws_subnet.zone

  route_table_id = aws_route_table.public.id
  subnet_id      = each.value.id
}
