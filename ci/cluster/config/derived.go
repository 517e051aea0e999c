package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// ControlPlanes are the nodes that run etcd and the API server, in the description's order.
func (c *Cluster) ControlPlanes() []Node { return c.withRole(RoleControlPlane) }

// Workers are the nodes that run workloads alone, in the description's order. There may be none.
func (c *Cluster) Workers() []Node { return c.withRole(RoleWorker) }

// PodNodes are the nodes that take pods: the workers, and where there are none the control planes.
func (c *Cluster) PodNodes() []Node {
	if workers := c.Workers(); len(workers) > 0 {
		return workers
	}
	return c.ControlPlanes()
}

// TakesPods says whether a node is one of those.
func (c *Cluster) TakesPods(n Node) bool { return n.Role == RoleWorker || len(c.Workers()) == 0 }

func (c *Cluster) withRole(role string) []Node {
	var list []Node
	for _, n := range c.Nodes {
		if n.Role == role {
			list = append(list, n)
		}
	}
	return list
}

// Node finds a node by its name.
func (c *Cluster) Node(name string) (Node, bool) {
	i := slices.IndexFunc(c.Nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return Node{}, false
	}
	return c.Nodes[i], true
}

// commonTag is on each VM that castle makes. With a hyphen and the cluster's name it is the tag of that cluster's VMs.
const commonTag = "castle"

// Tag is the tag that marks a VM of Proxmox as this cluster's, as terragrunt/modules/platform-proxmox sets it. Only VMs that
// carry it and whose id is in the cluster's range may be adopted or wiped.
func (c *Cluster) Tag() string { return commonTag + "-" + c.Name }

// Owns says whether the tags of a VM mark it as this cluster's: its tag, or what an earlier castle set in its place, the
// bare name beside the common tag and a role. The next create replaces the latter. A VM with another cluster's tag is
// never this one's.
func (c *Cluster) Owns(tags []string) bool {
	if slices.Contains(tags, c.Tag()) {
		return true
	}
	others := func(tag string) bool { return strings.HasPrefix(tag, commonTag+"-") }
	if reserved(c.Name) || slices.ContainsFunc(tags, others) {
		return false
	}
	role := slices.Contains(tags, RoleControlPlane) || slices.Contains(tags, RoleWorker)
	return role && slices.Contains(tags, commonTag) && slices.Contains(tags, c.Name)
}

// reserved says whether a cluster of this name would share a tag with other clusters' VMs.
func reserved(name string) bool {
	words := []string{commonTag, RoleControlPlane, RoleWorker}
	return slices.Contains(words, name) || strings.HasPrefix(name, commonTag+"-")
}

// Addresses are all that the cluster has of its network, and those of the others there that its description names: the gateway, name
// servers, and the services that are named by an address.
func (c *Cluster) Addresses() []netip.Addr {
	list := append([]netip.Addr{c.Endpoint, c.Network.Gateway}, c.Network.DNS...)
	for _, node := range c.Nodes {
		list = append(list, node.Address)
	}
	for _, text := range []string{c.Proxmox.URL, c.Secrets.Infisical.URL, c.GitOps.URL, c.State.S3.Endpoint} {
		if parsed, err := url.Parse(text); err == nil {
			if address, err := netip.ParseAddr(parsed.Hostname()); err == nil {
				list = append(list, address)
			}
		}
	}
	return append(list, c.PoolAddresses(math.MaxInt)...)
}

// Contains says whether a VM id is in the range.
func (r Range) Contains(id int) bool { return r.First <= id && id <= r.Last }

// Server is the URL of the Kubernetes API at the virtual IP.
func (c *Cluster) Server() string { return fmt.Sprintf("https://%s:6443", c.Endpoint) }

// Schematic is the id that the image factory gives a schematic of these extensions and nothing else: the SHA-256 of its YAML
// (github.com/siderolabs/image-factory, pkg/schematic).
func Schematic(extensions []string) string {
	text := "customization: {}\n"
	if len(extensions) > 0 {
		text = "customization:\n    systemExtensions:\n        officialExtensions:\n"
		for _, name := range extensions {
			text += "            - " + strings.TrimSpace(name) + "\n"
		}
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
