locals {
  name  = var.cluster.name
  nodes = { for node in var.cluster.nodes : node.name => node }
  # An address stands in the subnet of one zone, which is so the node's.
  zones = { for name, node in local.nodes : name => one([for zone, subnet in var.cluster.aws.zones : zone if cidrcontains(subnet, node.address)]) }

  control_planes = toset([for node in var.cluster.nodes : node.name if node.role == "controlplane"])

  # The first says whose a thing is, the second what the cloud controller manager takes for its own.
  tags = {
    castle                                = local.name
    "kubernetes.io/cluster/${local.name}" = "owned"
  }
}

# Sidero Labs' own image, unless another is named: one with extensions, which theirs lacks.
data "aws_ami" "talos" {
  count       = var.cluster.aws.ami == null ? 1 : 0
  owners      = ["540036508848"]
  most_recent = true

  filter {
    name   = "name"
    values = ["talos-${var.cluster.talos.version}-*-${var.cluster.aws.architecture}"]
  }
}

resource "aws_instance" "node" {
  for_each = local.nodes

  ami           = coalesce(var.cluster.aws.ami, one(data.aws_ami.talos[*].id))
  instance_type = each.value.instanceType
  subnet_id     = aws_subnet.zone[local.zones[each.key]].id
  private_ip    = each.value.address

  # The way out to images and updates, without a NAT gateway for each zone. What comes in is the security groups' to say.
  associate_public_ip_address = true

  vpc_security_group_ids = concat(
    [aws_security_group.node.id],
    contains(local.control_planes, each.key) ? [aws_security_group.controlplane.id] : [],
  )

  # Only control planes run what talks to AWS.
  iam_instance_profile = contains(local.control_planes, each.key) ? aws_iam_instance_profile.controlplane.name : null

  # Tokens only, and one hop: a pod in a network of its own gets no further than the node.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_type           = "gp3"
    volume_size           = each.value.disks[0].size
    encrypted             = true
    delete_on_termination = true
    tags                  = merge(local.tags, { Name = each.key })
  }

  tags = merge(local.tags, { Name = each.key, role = each.value.role })

  lifecycle {
    # A newer image is for nodes to come. Those that run are upgraded by Talos, not replaced all at once.
    ignore_changes = [ami]
  }
}

locals {
  # Further disks, at most eleven: AWS recommends /dev/sdf to /dev/sdp for them.
  disks = merge([for name, node in local.nodes : { for i, disk in node.disks : "${name}/${i}" => { node = name, size = disk.size, letter = substr("efghijklmnop", i, 1) } if i > 0 }]...)
}

resource "aws_ebs_volume" "disk" {
  for_each = local.disks

  availability_zone = local.zones[each.value.node]
  type              = "gp3"
  size              = each.value.size
  encrypted         = true
  tags              = merge(local.tags, { Name = each.key })
}

resource "aws_volume_attachment" "disk" {
  for_each = local.disks

  device_name = "/dev/sd${each.value.letter}"
  instance_id = aws_instance.node[each.value.node].id
  volume_id   = aws_ebs_volume.disk[each.key].id
}
