package config

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"tazlab.net/castle/ci/base/strictyaml"
)

// Limits of AWS's: lengths of a VPC and of its subnets (docs.aws.amazon.com, VPC user guide), the addresses of each subnet that are AWS's own,
// names of load balancers (elasticloadbalancing, CreateLoadBalancer), and volumes beside the root at /dev/sdf to /dev/sdp (EC2 user guide).
const (
	largestVPC      = 16
	reservedInZone  = 4
	longestLBName   = 32
	awsDisks        = 12
	widestAdminCIDR = 8
)

// longestEnding is that of the longest name of a load balancer or of what is behind it, see terragrunt/modules/platform-aws.
const longestEnding = "-50000"

func (k *checker) aws() {
	a := k.c.AWS
	if most := longestLBName - len(longestEnding); k.Has("name") && (len(k.c.Name) > most || strings.HasPrefix(k.c.Name, "internal-")) {
		k.Mistake("name", "%s begins the names of load balancers of AWS, which have at most %d characters and do not begin with internal-; write a name of at most %d",
			k.c.Name, longestLBName, most)
	}
	if k.Has("network.subnet") && k.c.Network.Subnet.Bits() < largestVPC {
		k.Mistake("network.subnet", "%s is larger than a VPC can be; write a /%d or a smaller one", k.c.Network.Subnet, largestVPC)
	}
	k.form("aws.region", a.Region, "a region of AWS, such as eu-central-1")
	k.form("aws.ami", a.AMI, "the id of an image, such as ami-0123456789abcdef0")
	k.word("aws.architecture", a.Architecture)
	k.zones()
	k.adminCIDRs()
	if k.Has("aws") && !k.Has("aws.ami") && !k.Broken("aws.ami") && len(k.c.Talos.Extensions) > 0 {
		k.Mistake("aws", "ami is missing, since Sidero Labs' own image has no extensions; write the id of the image of talos.schematic, or extensions: [] and storage: none")
	}
	if k.Has("kubernetes.cni") && k.c.Kubernetes.CNI == CNINone {
		k.Mistake("kubernetes.cni", "none is not for platform aws, whose nodes let flannel's port through and no other network's; write flannel")
	}
	for i, n := range k.c.Nodes {
		at := func(field string) string { return fmt.Sprintf("nodes[%d].%s", i, field) }
		k.form(at("instanceType"), n.InstanceType, "a type of instances, such as m7i.large")
		if k.Has(at("disks")) && len(n.Disks) > awsDisks {
			k.Mistake(at("disks"), "are %d; an instance takes %d here", len(n.Disks), awsDisks)
		}
		k.zoneOf(at("address"), n.Address)
	}
}

// zones checks the subnets of the zones, each against those before it.
func (k *checker) zones() {
	if k.Has("aws.zones") && len(k.c.AWS.Zones) == 0 {
		k.Mistake("aws.zones", "has no zone; %s", facts.Of("aws.zones").Hint)
	}
	names := slices.Sorted(maps.Keys(k.c.AWS.Zones))
	for i, zone := range names {
		at, subnet := strictyaml.Entry("aws.zones", zone), k.c.AWS.Zones[zone]
		if !k.Has(at) {
			continue
		}
		if letter, is := strings.CutPrefix(zone, k.c.AWS.Region); facts.Of("aws.region").Form.MatchString(k.c.AWS.Region) && (!is || len(letter) != 1 || letter < "a" || letter > "z") {
			k.Mistake(at, "%s is no availability zone of %s; write %[2]sa, %[2]sb or the like", zone, k.c.AWS.Region)
		}
		vpc := k.c.Network.Subnet
		switch {
		case k.Has("network.subnet") && (!vpc.Contains(subnet.Addr()) || subnet.Bits() < vpc.Bits()):
			k.Mistake(at, "%s is not within network.subnet, %s; write a part of it", subnet, vpc)
		case subnet.Bits() > smallest:
			k.Mistake(at, "%s is too small for a subnet of AWS; write a /%d or a larger one", subnet, smallest)
		}
		for _, other := range names[:i] {
			if before := k.c.AWS.Zones[other]; before.IsValid() && before.Overlaps(subnet) {
				k.Mistake(at, "%s overlaps that of %s, %s; give each zone a subnet of its own", subnet, other, before)
				break
			}
		}
	}
}

func (k *checker) adminCIDRs() {
	if k.Has("aws.adminCIDRs") && len(k.c.AWS.AdminCIDRs) == 0 {
		k.empty("aws.adminCIDRs")
	}
	seen := map[netip.Prefix]bool{}
	for i, cidr := range k.c.AWS.AdminCIDRs {
		at := fmt.Sprintf("aws.adminCIDRs[%d]", i)
		switch {
		case !k.Has(at):
		case cidr.Bits() < widestAdminCIDR:
			k.Mistake(at, "%s lets in the world, or a large part of it; write where you come from, such as 203.0.113.7/32", cidr)
		case seen[cidr]:
			k.Mistake(at, "%s stands in the list already; remove it", cidr)
		}
		seen[cidr] = true
	}
}

// zoneOf checks that an address is one that AWS gives in a zone's subnet.
func (k *checker) zoneOf(path string, a netip.Addr) {
	if !k.Has(path) || !k.Has("aws.zones") || len(k.c.AWS.Zones) == 0 || !k.c.Network.Subnet.Contains(a) {
		return
	}
	for _, zone := range slices.Sorted(maps.Keys(k.c.AWS.Zones)) {
		subnet := k.c.AWS.Zones[zone]
		if !subnet.IsValid() || !subnet.Contains(a) {
			continue
		}
		if first := number(subnet.Addr()) + reservedInZone; number(a) < first || a == lastAddress(subnet) {
			k.Mistake(path, "%s is AWS's own: the first four addresses of %s and its last; write one from %s on", a, subnet, address(first))
		}
		return
	}
	k.Mistake(path, "%s is in the subnet of no zone; write an address of one in aws.zones", a)
}
