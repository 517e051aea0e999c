# Run by `go test ./ci/test/awsprovider`, which brings the provider's schema. Nothing of AWS is called.

mock_provider "aws" {}

variables {
  cluster = {
    name    = "cloud"
    network = { subnet = "10.60.0.0/16" }
    aws = {
      region       = "eu-central-1"
      zones        = { "eu-central-1a" = "10.60.0.0/20", "eu-central-1b" = "10.60.16.0/20", "eu-central-1c" = "10.60.32.0/20" }
      adminCIDRs   = ["203.0.113.7/32"]
      architecture = "amd64"
    }
    talos = { version = "v1.13.9" }
    nodes = [
      { name = "cloud-cp-1", role = "controlplane", address = "10.60.0.11", instanceType = "m7i.large", disks = [{ size = 40 }] },
      { name = "cloud-cp-2", role = "controlplane", address = "10.60.16.11", instanceType = "m7i.large", disks = [{ size = 40 }] },
      { name = "cloud-cp-3", role = "controlplane", address = "10.60.32.11", instanceType = "m7i.large", disks = [{ size = 40 }] },
      { name = "cloud-worker-1", role = "worker", address = "10.60.32.21", instanceType = "m7i.xlarge", disks = [{ size = 40 }, { size = 100 }] },
    ]
  }
}

run "machines" {
  assert {
    condition     = aws_instance.node["cloud-worker-1"].subnet_id == aws_subnet.zone["eu-central-1c"].id && aws_instance.node["cloud-worker-1"].private_ip == "10.60.32.21"
    error_message = "a node does not stand in the zone of its address"
  }
  assert {
    condition     = aws_instance.node["cloud-cp-1"].vpc_security_group_ids == toset([aws_security_group.node.id, aws_security_group.controlplane.id])
    error_message = "a control plane is in other groups than those of nodes and of control planes"
  }
  assert {
    condition     = aws_instance.node["cloud-worker-1"].vpc_security_group_ids == toset([aws_security_group.node.id])
    error_message = "a worker is in another group than that of nodes"
  }
  assert {
    condition     = aws_instance.node["cloud-cp-1"].ami == data.aws_ami.talos[0].id && data.aws_ami.talos[0].owners == tolist(["540036508848"])
    error_message = "the image is not Sidero Labs' own"
  }
  assert {
    condition     = aws_volume_attachment.disk["cloud-worker-1/1"].device_name == "/dev/sdf" && aws_ebs_volume.disk["cloud-worker-1/1"].availability_zone == "eu-central-1c"
    error_message = "a further disk is not where its node is"
  }
}

# into ← from at which ports, as docs.siderolabs.com, "Talos network connectivity", has them.
run "ports" {
  assert {
    condition = { for name, rule in aws_vpc_security_group_ingress_rule.between : name => [rule.security_group_id, rule.referenced_security_group_id, "${rule.ip_protocol}/${rule.from_port}-${rule.to_port}"] } == {
      kubelet        = [aws_security_group.node.id, aws_security_group.node.id, "tcp/10250-10250"]
      flannel        = [aws_security_group.node.id, aws_security_group.node.id, "udp/4789-4789"]
      talos          = [aws_security_group.node.id, aws_security_group.controlplane.id, "tcp/50000-50000"]
      trustd         = [aws_security_group.controlplane.id, aws_security_group.node.id, "tcp/50001-50001"]
      etcd           = [aws_security_group.controlplane.id, aws_security_group.controlplane.id, "tcp/2379-2380"]
      kubernetes     = [aws_security_group.controlplane.id, aws_security_group.node.id, "tcp/6443-6443"]
      kubernetes-api = [aws_security_group.controlplane.id, aws_security_group.api.id, "tcp/6443-6443"]
      talos-api      = [aws_security_group.controlplane.id, aws_security_group.api.id, "tcp/50000-50000"]
    }
    error_message = "nodes reach each other at other ports than Talos's"
  }
  assert {
    condition     = alltrue([for rule in aws_vpc_security_group_ingress_rule.between : rule.cidr_ipv4 == null])
    error_message = "nodes are let in by address"
  }
}

run "balancer" {
  assert {
    condition     = { for name, listener in aws_lb_listener.api : name => listener.port } == { kubernetes = 6443, talos = 50000 }
    error_message = "the load balancer listens elsewhere"
  }
  assert {
    condition     = { for name, target in aws_lb_target_group_attachment.api : name => target.target_id } == { for pair in setproduct(["kubernetes", "talos"], ["cloud-cp-1", "cloud-cp-2", "cloud-cp-3"]) : "${pair[0]}/${pair[1]}" => aws_instance.node[pair[1]].id }
    error_message = "the load balancer's targets are not the control planes"
  }
  assert {
    condition     = alltrue([for name, listener in aws_lb_listener.api : listener.default_action[0].target_group_arn == aws_lb_target_group.api[name].arn])
    error_message = "a listener passes on to the other API"
  }
  assert {
    condition     = aws_lb.api.security_groups == toset([aws_security_group.api.id])
    error_message = "the load balancer is not behind its group"
  }
  assert {
    condition     = output.endpoint == aws_lb.api.dns_name && length(output.public_addresses) == 4
    error_message = "castle is not told where the cluster is"
  }
}
