// Package newcluster describes a new cluster: a cluster.yaml whose addresses, VM ids and names collide with no other cluster of the
// repository, a template of its SOPS file, and a list of what only a person can provide. It contacts nobody, and it changes no cluster that is
// there.
package newcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tazlab.net/castle/ci/cluster/config"
)

// Execute writes the folder of a new cluster into out. clusters is the repository's folder with a folder for each cluster, which need not be
// there yet, and layers the folder with the layers, whose templates are used. folder is the new one's path in the repository, as the texts
// name it. Nothing is written where anything is wrong; all of that is one error.
func Execute(clusters, layers, out, folder string, o Options) error {
	others, err := read(clusters)
	if err != nil {
		return err
	}
	var known []string
	for _, other := range others {
		known = append(known, other.Name)
	}
	if err := o.check(known); err != nil {
		return err
	}
	described, taken := o.describe(others)
	if err := missing(described); err != nil {
		return err
	}
	if o.Platform != config.PlatformAWS { // whose VPC is a network of its own
		if err := o.place(described, others); err != nil {
			return err
		}
	}
	return write(filepath.Join(layers, "templates"), filepath.Join(out, o.Name), folder, described, taken)
}

// templatesOf is the folder of a platform's own templates, below those of all.
var templatesOf = map[string]string{config.PlatformProxmox: "proxmox-talos", config.PlatformSandbox: "sandbox", config.PlatformAWS: "aws-talos",
	config.PlatformTalos: "metal-talos"}

// read gives the clusters of a repository. Beside one with mistakes, nothing can be placed.
func read(clusters string) ([]*config.Cluster, error) {
	entries, err := os.ReadDir(clusters)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []*config.Cluster
	var mistakes []error
	for _, entry := range entries {
		folder := filepath.Join(clusters, entry.Name())
		if _, err := os.Stat(filepath.Join(folder, config.File)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		described, err := config.Load(folder)
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		list = append(list, described)
	}
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("what the clusters of this repository have taken is not known as long as one is described with mistakes:\n%w", errors.Join(mistakes...))
	}
	return list, nil
}

// place gives the virtual IP, the nodes, the load balancers and the VMs what nobody has.
func (o *Options) place(c *config.Cluster, others []*config.Cluster) error {
	room := spaceOf(o.network.Subnet, others, c.Addresses()...)
	wanted := len(c.Nodes)
	if !c.MakesMachines() {
		wanted = 0 // they have their addresses
	}
	endpoint, addresses, forPool, err := room.addresses(wanted)
	if err != nil {
		return err
	}
	c.Endpoint, c.LoadBalancer.Pool = endpoint, []string{forPool}
	if !c.MakesMachines() {
		return nobodyElses(c, others)
	}
	c.VMIDs = room.vmIDs(len(c.Nodes), c.TemplateIDs())
	for i := range c.Nodes {
		c.Nodes[i].Address, c.Nodes[i].VMID = addresses[i], c.VMIDs.First+i
	}
	return nil
}
