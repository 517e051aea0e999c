package newcluster

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"

	"tazlab.net/castle/ci/cluster/config"
)

// instanceTypes are what nodes of other platforms have in cores and, nearly, in memory.
var instanceTypes = map[string]string{config.RoleControlPlane: "m7i.large", config.RoleWorker: "m7i.xlarge"}

// readAWS reads what only AWS has, and names what is of Proxmox.
func (o *Options) readAWS() []error {
	var mistakes []error
	if o.AWSRegion == "" {
		mistakes = append(mistakes, errors.New("AWS's region is not known: give it with --aws-region, such as eu-central-1"))
	}
	if len(o.AdminCIDRs) == 0 {
		mistakes = append(mistakes, errors.New("nobody would reach the cluster's APIs: say where you come from with --admin-cidr, such as 203.0.113.7/32, once for each"))
	}
	for _, text := range o.AdminCIDRs {
		cidr, err := config.ReadSubnet(text)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("--admin-cidr %w", err))
		}
		o.admins = append(o.admins, cidr)
	}
	if o.ofProxmox() || o.Gateway != "" || len(o.DNS) > 0 {
		mistakes = append(mistakes, errors.New("--proxmox-url, --proxmox-fingerprint, --host, --template, --storage, --bridge, --gateway and --dns are not for --platform aws: leave them out"))
	}
	return mistakes
}

// ofProxmox tells whether something was said that only Proxmox has.
func (o *Options) ofProxmox() bool {
	return o.ProxmoxURL != "" || o.Fingerprint != "" || o.Storage != "" || o.Bridge != "" || o.Template != 0 || len(o.Hosts) > 0
}

// ofAWS tells whether something was said that only AWS has.
func (o *Options) ofAWS() bool {
	return o.AWSRegion != "" || o.AMI != "" || len(o.Zones)+len(o.AdminCIDRs) > 0
}

// aws fills in where a cluster on AWS stands, and what it stands on.
func (o *Options) aws(c, like *config.Cluster) (taken []string) {
	take := taker(&taken)
	zones := o.Zones
	if len(zones) == 0 {
		zones = []string{o.AWSRegion + "a", o.AWSRegion + "b", o.AWSRegion + "c"}
	}
	c.AWS = config.AWS{Region: o.AWSRegion, Zones: map[string]netip.Prefix{}, AdminCIDRs: o.admins, AMI: o.AMI, Architecture: "amd64"}
	// A part of the VPC for each, and as much again left for what comes later.
	length := min(o.network.Subnet.Bits()+bits.Len(uint(len(zones)))+1, smallestSubnet)
	c.Nodes = o.nodes(nil)
	inZone := map[string]int{}
	for i, zone := range zones {
		at := spaceOf(o.network.Subnet, nil).at(i << (32 - length))
		c.AWS.Zones[zone] = netip.PrefixFrom(at, length)
	}
	for i := range c.Nodes {
		node, zone := &c.Nodes[i], zones[i%len(zones)]
		// The first four addresses are AWS's own.
		node.Address = spaceOf(c.AWS.Zones[zone], nil).at(4 + inZone[zone])
		inZone[zone]++
		node.InstanceType, node.Cores, node.Memory = instanceTypes[node.Role], 0, 0
	}
	c.GitOps.URL, c.GitOps.Branch = take("the GitOps repository", o.GitOpsURL, like.GitOps.URL), like.GitOps.Branch
	c.Secrets.Infisical = o.infisical(like, take)
	c.State = o.state(like, take)
	return taken
}

// taker notes what is taken from another cluster.
func taker(taken *[]string) func(what, said, has string) string {
	return func(what, said, has string) string {
		if said == "" && has != "" {
			*taken = append(*taken, fmt.Sprintf("%s (%s)", what, has))
		}
		return cmp.Or(said, has)
	}
}
