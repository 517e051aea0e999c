package newcluster

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"tazlab.net/castle/ci/cluster/config"
)

// Options are what a person says of a new cluster. What is empty is taken from the repository's other clusters on the platform, in the
// order of their names, and where none says it from the defaults.
type Options struct {
	Name     string // a DNS label: its folder's name, its VMs' tag, and the beginning of its nodes' names
	Platform string // config.PlatformProxmox, PlatformTalos, PlatformSandbox or PlatformAWS
	Subnet   string
	Gateway  string   // default: the subnet's first address
	DNS      []string // default: the gateway

	ControlPlanes, Workers int

	ProxmoxURL, Fingerprint, Storage, Bridge string
	Hosts                                    []string // Proxmox nodes, which the cluster's nodes are spread over
	Template                                 int      // VM id of the Talos template on the first of Hosts; the others' follow it

	Machines    []string // addresses of machines that are there: the first ControlPlanes of them are these, the others Workers
	InstallDisk string   // of each of them

	AWSRegion, AMI    string
	Zones, AdminCIDRs []string // availability zones, the first three of the region where none is named; where administrators come from

	GitOpsURL, Branch string

	Infisical                  string // its URL, or config.NoInfisical
	Project, Slug, Environment string // where there is one

	Bucket, Endpoint, Region string // of the states' store
	LocalStates              bool   // no store: states in a volume of the engine

	network config.Network // what check has read
	admins  []netip.Prefix // likewise
	there   []netip.Addr   // likewise, of Machines
}

// Sizes of nodes where nobody says any, those of the documentation's example: cores, memory in MiB, disk in GiB.
var sizes = map[string]struct{ cores, memory, disk int }{
	config.RoleControlPlane: {4, 8192, 40},
	config.RoleWorker:       {4, 16384, 100},
}

// kubernetesVersion is a new cluster's where the repository has no other.
const kubernetesVersion = "v1.36.4"

// extensions and modules are what Longhorn and encrypted disks need.
var (
	extensions = []string{"siderolabs/iscsi-tools", "siderolabs/util-linux-tools"}
	modules    = []string{"iscsi_tcp", "dm_crypt"}
)

// check reads the addresses, and names all that is missing or cannot be, each with its flag.
func (o *Options) check(known []string) error {
	var mistakes []error
	say := func(format string, arguments ...any) { mistakes = append(mistakes, fmt.Errorf(format, arguments...)) }
	switch {
	case o.Name == "":
		say("the cluster has no name: give one with --name")
	case slices.Contains(known, o.Name):
		say("there is a cluster %s already: give another --name; nothing of it was changed", o.Name)
	}
	if o.Platform != config.PlatformTalos && (len(o.Machines) > 0 || o.InstallDisk != "") {
		say("--machine and --install-disk are for --platform talos, where castle makes no machines: leave them out")
	}
	switch o.Platform {
	case config.PlatformTalos:
		mistakes = append(mistakes, o.readMachines()...)
	case config.PlatformProxmox, config.PlatformSandbox:
		if o.ofAWS() {
			say("--aws-region, --aws-zone, --admin-cidr and --ami are for --platform aws: leave them out")
		}
	case config.PlatformAWS:
		mistakes = append(mistakes, o.readAWS()...)
	default:
		say("--platform %q: write proxmox, talos for machines that run Talos already, sandbox for the proving ground, or aws", o.Platform)
	}
	if o.Subnet == "" {
		say("the nodes' subnet is not known: give it with --subnet, such as 192.168.1.0/24")
	} else if err := o.readNetwork(); err != nil {
		mistakes = append(mistakes, err)
	}
	if o.ControlPlanes < 1 || o.ControlPlanes%2 == 0 {
		say("--control-planes %d: etcd's quorum needs an odd number, 1, 3 or 5", o.ControlPlanes)
	}
	if o.Workers < 0 {
		say("--workers %d is no number of workers", o.Workers)
	}
	if o.LocalStates && (o.Bucket != "" || o.Endpoint != "" || o.Region != "") {
		say("--local-states keeps the states in the engine: leave --state-bucket, --state-endpoint and --state-region out")
	}
	return errors.Join(mistakes...)
}

func (o *Options) readNetwork() error {
	n := &o.network
	subnet, err := config.ReadSubnet(o.Subnet)
	switch {
	case err != nil:
		return fmt.Errorf("--subnet %w", err)
	case subnet.Bits() > smallestSubnet:
		return fmt.Errorf("--subnet %s is too small for nodes, virtual IP and load balancers: use a /%d or a larger one", subnet, smallestSubnet)
	}
	n.Subnet, n.Gateway = subnet, subnet.Addr().Next()
	var mistakes []error
	if o.Gateway != "" {
		if n.Gateway, err = config.ReadAddress(o.Gateway); err != nil {
			mistakes = append(mistakes, fmt.Errorf("--gateway %w", err))
		}
	}
	for _, text := range o.DNS {
		server, err := config.ReadAddress(text)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("--dns %w", err))
		}
		n.DNS = append(n.DNS, server)
	}
	if len(n.DNS) == 0 {
		n.DNS = []netip.Addr{n.Gateway}
	}
	return errors.Join(mistakes...)
}

// missing names what a description cannot do without and nobody has said.
func missing(c *config.Cluster) error {
	var mistakes []error
	type field struct{ value, what, flag string }
	fields := []field{
		{c.Proxmox.URL, "the address of Proxmox's API", "--proxmox-url, such as https://192.168.1.10:8006/"},
		{hostsOf(c), "the Proxmox node that the VMs stand on", "--host, once for each"},
	}
	if c.Platform == config.PlatformAWS || !c.MakesMachines() {
		fields = nil
	}
	for _, field := range append(fields, field{c.GitOps.URL, "the GitOps repository that Flux follows", "--gitops-url, by https"}) {
		if field.value == "" {
			mistakes = append(mistakes, fmt.Errorf("%s is not known: give it with %s", field.what, field.flag))
		}
	}
	if i := c.Secrets.Infisical; i.URL != "" && (i.Project == "" || i.Slug == "") {
		mistakes = append(mistakes, errors.New("the project in Infisical is not known: give its id and its slug with --infisical-project and --infisical-slug, "+
			"or --infisical none, where all secrets are to stand in SOPS files"))
	}
	if s := c.State; s.Backend == config.StateS3 && (s.S3.Bucket == "" || s.S3.Endpoint == "" && s.S3.Region == "") {
		mistakes = append(mistakes, errors.New("the store of the states is not known: give --state-bucket, and --state-endpoint or for AWS --state-region; "+
			"or --local-states for a trial, with the states in a volume of the engine"))
	}
	return errors.Join(mistakes...)
}

func hostsOf(c *config.Cluster) string {
	var hosts []string
	for _, node := range c.Nodes {
		if node.Host != "" && !slices.Contains(hosts, node.Host) {
			hosts = append(hosts, node.Host)
		}
	}
	return strings.Join(hosts, ", ")
}
