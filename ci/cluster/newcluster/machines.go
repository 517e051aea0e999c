package newcluster

import (
	"errors"
	"fmt"
	"slices"

	"tazlab.net/castle/ci/cluster/config"
)

// readMachines reads the addresses of machines that are there, and names what is of other platforms.
func (o *Options) readMachines() []error {
	var mistakes []error
	say := func(format string, arguments ...any) { mistakes = append(mistakes, fmt.Errorf(format, arguments...)) }
	for _, text := range o.Machines {
		address, err := config.ReadAddress(text)
		if err != nil {
			say("--machine %w", err)
		}
		o.there = append(o.there, address)
	}
	switch o.Workers = len(o.Machines) - o.ControlPlanes; {
	case len(o.Machines) == 0:
		o.Workers = 0
		say("it is not known where the machines are: give the address of each with --machine, such as 192.168.1.31, once for each, control planes first")
	case o.Workers < 0:
		say("--machine names %d for %d control planes: give the address of each, or fewer --control-planes", len(o.Machines), o.ControlPlanes)
		o.Workers = 0
	}
	if o.InstallDisk == "" {
		mistakes = append(mistakes, errors.New("it is not known which disk Talos is installed to, with all that is on it going: give it with --install-disk, such as /dev/nvme0n1"))
	}
	if o.ofProxmox() || o.ofAWS() {
		mistakes = append(mistakes, errors.New("--proxmox-url, --proxmox-fingerprint, --host, --template, --storage and --bridge, and what is AWS's, are not for --platform talos: leave them out"))
	}
	return mistakes
}

// machines fills in what a cluster on machines that are there stands on.
func (o *Options) machines(c, like *config.Cluster) (taken []string) {
	take := taker(&taken)
	c.Nodes = o.nodes(nil)
	for i := range c.Nodes {
		node := &c.Nodes[i]
		node.Address, node.InstallDisk = o.there[i], o.InstallDisk
		node.Cores, node.Memory, node.Disks = 0, 0, nil
	}
	c.GitOps.URL, c.GitOps.Branch = take("the GitOps repository", o.GitOpsURL, like.GitOps.URL), like.GitOps.Branch
	c.Secrets.Infisical = o.infisical(like, take)
	c.State = o.state(like, take)
	return taken
}

// nobodyElses fails where a machine has an address that another cluster of the repository has.
func nobodyElses(c *config.Cluster, others []*config.Cluster) error {
	var mistakes []error
	for _, node := range c.Nodes {
		for _, other := range others {
			if slices.Contains(other.Addresses(), node.Address) {
				mistakes = append(mistakes, fmt.Errorf("--machine %s: the cluster %s of this repository has that address; give that of another machine", node.Address, other.Name))
			}
		}
	}
	return errors.Join(mistakes...)
}
