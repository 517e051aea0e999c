package main

import (
	"strings"
	"testing"
)

// finding is what a policy finds wrong with a resource.
type finding = string

// policy is what every plan of the module has to keep, and changes of the module that break it.
type policy struct {
	name   string
	check  func(resources) []finding
	breaks []change
}

const owner = "kubernetes.io/cluster/cloud"

var admins = []any{"203.0.113.7/32", "198.51.100.0/24"} // as in testdata/cloud

var policies = []policy{
	{"nothing comes in from the world", closed, []change{
		{"firewall.tf", "cidr_ipv4         = each.value.cidr", `cidr_ipv4         = "0.0.0.0/0"`},
		{"firewall.tf", "cidr_ipv4         = each.value.cidr", `cidr_ipv6         = "::/0"`},
		{"firewall.tf", "referenced_security_group_id = local.groups[each.value.from]", `cidr_ipv4 = "10.0.0.0/8"`},
		{"firewall.tf", `ip_protocol       = "tcp"`, `ip_protocol       = "-1"`},
		{"firewall.tf", "from_port         = each.value.port", "from_port         = 0"},
		{"firewall.tf", `"machine ${cidr}"    = { into = "node", cidr = cidr, port = 50000 }`, `"machine ${cidr}" = { into = "node", cidr = cidr, port = 10250 }`},
		{"firewall.tf", `description = "Nodes of the cluster ${local.name}"`, `description = "Nodes"
  ingress     = [{ cidr_blocks = ["0.0.0.0/0"], description = "", from_port = 0, ipv6_cidr_blocks = [], prefix_list_ids = [], protocol = "-1", security_groups = [], self = false, to_port = 0 }]`},
		{"network.tf", `vpc_id = aws_vpc.cluster.id
  tags   = { castle = local.name, Name = "${local.name}-unused" }`, `vpc_id = aws_vpc.cluster.id
  ingress { 
    protocol  = "-1"
    from_port = 0
    to_port   = 0
    self      = true
  }`},
	}},
	{"nobody logs in", noLogin, []change{
		{"main.tf", "instance_type = each.value.instanceType", "instance_type = each.value.instanceType\n  key_name = \"mine\""},
		{"main.tf", "instance_type = each.value.instanceType", "instance_type = each.value.instanceType\n  user_data = \"secret\""},
		{"outputs.tf", `output "vpc_id"`, "resource \"aws_key_pair\" \"mine\" {\n  public_key = \"ssh-ed25519 AAAA\"\n}\n\noutput \"vpc_id\""},
		{"firewall.tf", "first = 10250, last = 10250", "first = 22, last = 22"},
		{"firewall.tf", "first = 2379, last = 2380", "first = 0, last = 65535"},
	}},
	{"metadata by token, and not for pods", metadata, []change{
		{"main.tf", `"required"`, `"optional"`},
		{"main.tf", "http_put_response_hop_limit = 1", "http_put_response_hop_limit = 2"},
		{"main.tf", "    http_tokens                 = \"required\"\n", ""},
	}},
	{"volumes are encrypted", encrypted, []change{
		{"main.tf", "encrypted             = true", "encrypted             = false"},
		{"main.tf", "    encrypted             = true\n", ""},
		{"main.tf", "  encrypted         = true\n", ""},
		{"main.tf", `type              = "gp3"`, `type              = "gp2"`},
	}},
	{"all bears the cluster's name", tagged, []change{
		{"main.tf", "castle                                = local.name", "castle = \"other\""},
		{"identity.tf", "  tags = { castle = local.name }\n", ""},
		{"loadbalancer.tf", "  tags                             = { castle = local.name, Name = \"${local.name}-api\" }\n", ""},
		{"firewall.tf", "tags                         = { castle = local.name }", "tags = {}"},
		{"firewall.tf", `tags        = { castle = local.name, Name = "${local.name}-controlplane" }`, "tags = local.tags"},
	}},
	{"only control planes speak to AWS, and no more than they must", least, []change{
		{"main.tf", "contains(local.control_planes, each.key) ? aws_iam_instance_profile.controlplane.name : null", "aws_iam_instance_profile.controlplane.name"},
		{"identity.tf", `"ec2:CreateSecurityGroup"`, `"ec2:*"`},
		{"identity.tf", `"ec2:DescribeVpcs",`, `"ec2:DescribeVpcs", "ec2:TerminateInstances",`},
		{"identity.tf", "        Condition = { StringEquals = local.becomes_owned }\n", ""},
		{"identity.tf", `"ec2.amazonaws.com"`, `"*"`},
	}},
	{"the API is behind a load balancer of its own group, which asks whether it is well", balanced, []change{
		{"loadbalancer.tf", "  security_groups                  = [aws_security_group.api.id]\n", ""},
		{"loadbalancer.tf", "[for subnet in aws_subnet.zone : subnet.id]", `[aws_subnet.zone["eu-central-1a"].id]`},
		{"loadbalancer.tf", `    protocol            = "TCP"
    port                = "traffic-port"
`, `    port                = "10256"
    protocol            = "HTTP"
`},
		{"loadbalancer.tf", "preserve_client_ip   = false", "preserve_client_ip   = true"},
	}},
}

func TestThePoliciesHold(t *testing.T) {
	plan := resourcesOf(newTofu(t).plan(t, change{}))
	for _, policy := range policies {
		if found := policy.check(plan); len(found) > 0 {
			t.Errorf("%s:\n%s", policy.name, strings.Join(found, "\n"))
		}
	}
}

// Each policy finds what it is there for.
func TestABrokenModuleKeepsNoPolicy(t *testing.T) {
	tofu := newTofu(t)
	for _, policy := range policies {
		for _, change := range policy.breaks {
			found := policy.check(resourcesOf(tofu.plan(t, change)))
			t.Logf("%s: %s", policy.name, strings.Join(found, "; "))
			if len(found) == 0 {
				t.Errorf("%s: nothing is found where %s has %q", policy.name, change.file, change.new)
			}
		}
	}
}
