package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/base/strictyaml"
)

// platformOnly are the fields that the descriptions of some platforms have and those of others must not have. The proving ground is a Proxmox.
var platformOnly = map[string][]string{
	"endpoint":        {PlatformProxmox, PlatformTalos},
	"network.gateway": {PlatformProxmox, PlatformTalos},
	"network.dns":     {PlatformProxmox, PlatformTalos},
	"proxmox":         {PlatformProxmox},
	"vmIDs":           {PlatformProxmox},
	"nodes[].vmID":    {PlatformProxmox},
	"nodes[].host":    {PlatformProxmox},
	"nodes[].cores":   {PlatformProxmox},
	"nodes[].memory":  {PlatformProxmox},
	"nodes[].disks":   {PlatformProxmox, PlatformAWS},
	"loadBalancer":    {PlatformProxmox, PlatformTalos}, // or the word none, which is true on aws as well

	"nodes[].installDisk": {PlatformTalos},
	"nodes[].mac":         {PlatformTalos},
	"nodes[].fingerprint": {PlatformTalos},

	"aws":                  {PlatformAWS},
	"nodes[].instanceType": {PlatformAWS},
}

// instead says what a platform has in the place of another's field.
var instead = map[string]map[string]string{
	PlatformAWS: {
		"endpoint":        "; the load balancer of the API has a name of its own",
		"network.gateway": "; the VPC has its own",
		"network.dns":     "; the VPC has its own",
		"nodes[].cores":   "; instanceType says it",
		"nodes[].memory":  "; instanceType says it",
		"loadBalancer":    "; a Service gets a load balancer of AWS's",
	},
	PlatformTalos: {
		"proxmox":       "; castle makes no machines there",
		"nodes[].disks": "; installDisk says which one is Talos's, and further ones are the machine's own",
	},
	PlatformProxmox: {
		"nodes[].installDisk": "; Talos is installed to the first of disks",
		"nodes[].fingerprint": "; a VM is known by the UUID that Proxmox gave it",
	},
}

func init() {
	for path := range platformOnly {
		fact := facts[path]
		fact.Optional = true
		facts[path] = fact
	}
}

// mayMiss are those of a platform's own fields that it need not have.
var mayMiss = map[string]bool{"nodes[].mac": true, "nodes[].fingerprint": true}

// kindOf is the platform that a platform's description is like. One that nobody knows is told of once, and not by what it would need.
func kindOf(platform string) string {
	if platform == PlatformAWS || platform == PlatformTalos {
		return platform
	}
	return PlatformProxmox
}

// has tells whether the descriptions of a platform have a field of platformOnly.
func has(platform, path string) bool { return slices.Contains(platformOnly[path], kindOf(platform)) }

// grammarFor is the grammar of the descriptions of one platform.
func grammarFor(platform string) strictyaml.Schema {
	g := grammar
	g.Facts = maps.Clone(facts)
	for path := range platformOnly {
		fact := g.Facts[path]
		fact.Optional = mayMiss[path] || !has(platform, path)
		g.Facts[path] = fact
	}
	return g
}

// platformIn looks for the platform in a description that was not read yet; "" where it says none that can be read.
func platformIn(data []byte) string {
	var described struct {
		Platform yaml.Node `yaml:"platform"`
	}
	if yaml.Unmarshal(data, &described) != nil {
		return ""
	}
	return described.Platform.Value
}

// foreign names what belongs to another platform.
func (k *checker) foreign() {
	for _, path := range slices.Sorted(maps.Keys(platformOnly)) {
		if has(k.c.Platform, path) {
			continue
		}
		for _, at := range k.places(path) {
			if path == "loadBalancer" && !k.Broken(at) && !k.c.LoadBalancer.Has() {
				continue
			}
			if k.Has(at) || k.Broken(at) {
				k.Mistake(at, "is for platform %s; remove it%s", strings.Join(platformOnly[path], " and "), instead[kindOf(k.c.Platform)][path])
			}
		}
	}
}

// places are where a description has a field, in each node where it is one of theirs.
func (k *checker) places(path string) []string {
	const ofNodes = "nodes[]."
	if len(path) <= len(ofNodes) || path[:len(ofNodes)] != ofNodes {
		return []string{path}
	}
	var list []string
	for i := range k.c.Nodes {
		list = append(list, fmt.Sprintf("nodes[%d].%s", i, path[len(ofNodes):]))
	}
	return list
}

// MakesMachines says whether castle makes and removes the cluster's machines, by its hypervisor. Where it does not, they are there already, and
// all that castle knows of one is what answers at its address.
func (c *Cluster) MakesMachines() bool { return c.Platform != PlatformTalos }

// Unready says what keeps castle from working on a cluster that can be described: its platform is not one that any verb knows. Nil: nothing.
func (c *Cluster) Unready() error {
	if c.Platform != PlatformAWS {
		return nil
	}
	return fmt.Errorf("cluster %s is on platform aws, of which castle has the description, its checks and the OpenTofu modules platform-aws and networking-aws, "+
		"and no verb that runs them: it creates, changes and removes nothing there. Nothing was changed; docs/aws.md says what can be done", c.Name)
}
