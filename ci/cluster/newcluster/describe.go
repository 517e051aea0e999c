package newcluster

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/uuid"

	"tazlab.net/castle/ci/cluster/config"
)

// describe is the new cluster but for what has to be found free. taken names what was taken from another cluster, and whose it was.
func (o *Options) describe(others []*config.Cluster) (c *config.Cluster, taken []string) {
	like := &config.Cluster{} // says nothing
	if at := slices.IndexFunc(others, func(other *config.Cluster) bool { return other.Platform == o.Platform }); at >= 0 {
		like = others[at]
	}
	c = &config.Cluster{Name: o.Name, Platform: o.Platform}
	c.Network = o.network
	switch o.Platform {
	case config.PlatformSandbox:
		o.sandbox(c)
	case config.PlatformTalos:
		taken = o.machines(c, like)
	case config.PlatformAWS:
		taken = o.aws(c, like)
		c.Network = config.Network{Subnet: o.network.Subnet} // the rest is the VPC's own
	default:
		taken = o.proxmox(c, like)
	}
	extensions, modules := extensions, modules
	if o.Platform == config.PlatformAWS && o.AMI == "" {
		extensions, modules = []string{}, []string{"dm_crypt"} // Sidero Labs' own image has none, and so no storage
	}
	c.Talos = config.Talos{
		Version: cmp.Or(like.Talos.Version, config.TalosVersion), Extensions: extensions, KernelModules: modules, Schematic: config.Schematic(extensions),
		DiskEncryption:  config.DiskEncryption{Ephemeral: config.EncryptionNodeID},
		RegistryMirrors: c.Talos.RegistryMirrors,
	}
	c.Kubernetes = config.Kubernetes{
		Version:   cmp.Or(like.Kubernetes.Version, kubernetesVersion),
		PodSubnet: apart(o.network.Subnet, "10.244.0.0/16", "172.20.0.0/16"), ServiceSubnet: apart(o.network.Subnet, "10.96.0.0/16", "172.21.0.0/16"),
	}
	if len(extensions) > 0 {
		c.Storage = config.Storage{Replicas: max(1, min(2, o.Workers)), DataPath: config.LonghornFolder, StorageClass: "longhorn"}
	}
	c.GitOps.Branch, c.GitOps.Path = cmp.Or(o.Branch, c.GitOps.Branch, "main"), "clusters/"+o.Name
	c.Secrets.SOPS = []string{secretsFile}
	if c.Secrets.Infisical.Has() {
		c.Secrets.Infisical.Path = "/clusters/" + o.Name
	} else {
		c.Secrets.SOPS = append(c.Secrets.SOPS, pkiFile)
	}
	return c, taken
}

// proxmox fills in where a cluster on Proxmox stands, and what it stands on.
func (o *Options) proxmox(c, like *config.Cluster) (taken []string) {
	take := taker(&taken)
	c.Proxmox = config.Proxmox{
		URL:     take("Proxmox", o.ProxmoxURL, like.Proxmox.URL),
		Storage: cmp.Or(o.Storage, like.Proxmox.Storage, "local-lvm"), Bridge: cmp.Or(o.Bridge, like.Proxmox.Bridge, "vmbr0"),
	}
	// Another Proxmox has another certificate.
	if c.Proxmox.Fingerprint = o.Fingerprint; o.Fingerprint == "" && c.Proxmox.URL == like.Proxmox.URL {
		c.Proxmox.Fingerprint = like.Proxmox.Fingerprint
	}
	if c.Proxmox.Fingerprint == "" {
		c.Proxmox.CA = authorityFile
	}
	hosts := o.Hosts
	if len(hosts) == 0 && c.Proxmox.URL == like.Proxmox.URL {
		for _, node := range like.Nodes {
			if !slices.Contains(hosts, node.Host) {
				hosts = append(hosts, node.Host)
			}
		}
	}
	c.Nodes = o.nodes(hosts)
	o.templates(c, like, hosts)
	c.GitOps.URL, c.GitOps.Branch = take("the GitOps repository", o.GitOpsURL, like.GitOps.URL), like.GitOps.Branch
	c.Secrets.Infisical = o.infisical(like, take)
	c.State = o.state(like, take)
	return taken
}

// templates are those that the other clusters are cloned from, where these stand on all hosts; else one on each host.
func (o *Options) templates(c, like *config.Cluster, hosts []string) {
	p, first := &c.Proxmox, cmp.Or(o.Template, like.Proxmox.Template, 900)
	switch {
	case o.Template == 0 && p.URL == like.Proxmox.URL && (like.Proxmox.TemplateHost != "" || len(like.Proxmox.Templates) > 0 && like.HasTemplates(hosts)):
		p.Template, p.TemplateHost, p.Templates = like.Proxmox.Template, like.Proxmox.TemplateHost, like.Proxmox.Templates
	case len(hosts) < 2:
		p.Template = first
	default:
		p.Templates = map[string]int{}
		for i, host := range hosts {
			p.Templates[host] = first + i
		}
	}
}

// infisical is the project given, or the one that the other clusters have; without either, a project that is to be named.
func (o *Options) infisical(like *config.Cluster, take func(what, said, has string) string) config.Infisical {
	has := like.Secrets.Infisical
	switch {
	case o.Infisical == config.NoInfisical:
		return config.Infisical{}
	case o.Infisical == "" && o.Project == "" && like.Name != "":
		if has.Has() {
			take("Infisical's project", "", has.Slug)
		}
		return has
	}
	return config.Infisical{
		URL: cmp.Or(o.Infisical, has.URL, "https://eu.infisical.com"), Project: o.Project, Slug: o.Slug, Environment: cmp.Or(o.Environment, has.Environment, "prod"),
	}
}

// state is the store given, or that of the other clusters, which keeps each cluster's states by its name.
func (o *Options) state(like *config.Cluster, take func(what, said, has string) string) config.State {
	switch {
	case o.LocalStates:
		return config.State{Backend: config.StateLocal}
	case o.Bucket == "" && o.Endpoint == "" && o.Region == "" && like.State.Backend != "":
		take("the store of the states", "", like.State.S3.Bucket)
		return like.State
	}
	return config.State{Backend: config.StateS3, S3: config.S3{Bucket: o.Bucket, Endpoint: o.Endpoint, Region: o.Region}}
}

// sandbox fills in the services of a proving ground, which has all of its own in a network of its own.
func (o *Options) sandbox(c *config.Cluster) {
	at := spaceOf(o.network.Subnet, nil).at
	c.Proxmox = config.Proxmox{URL: fmt.Sprintf("https://%s:8006/", at(10)), CA: authorityFile, Template: 900, Storage: "local-lvm", Bridge: "vmbr0"}
	c.Nodes = o.nodes([]string{"pve"})
	c.GitOps.URL = fmt.Sprintf("https://%s/gitops.git", at(12))
	c.Secrets.Infisical = config.Infisical{URL: fmt.Sprintf("http://%s:8080", at(11)), Project: uuid.NewString(), Slug: o.Name, Environment: "prod"}
	registry := fmt.Sprintf("%s:5000", at(13))
	c.Talos.RegistryMirrors = map[string][]string{registry: {"http://" + registry}}
	c.State = config.State{Backend: config.StateLocal}
}

// nodes are the control planes and the workers, spread over the hosts, neither with an address nor an id.
func (o *Options) nodes(hosts []string) []config.Node {
	var list []config.Node
	add := func(count int, role, short string) {
		for i := range count {
			size := sizes[role]
			node := config.Node{Name: fmt.Sprintf("%s-%s-%d", o.Name, short, i+1), Role: role, Cores: size.cores, Memory: size.memory, Disks: []config.Disk{{Size: size.disk}}}
			if len(hosts) > 0 {
				node.Host = hosts[len(list)%len(hosts)]
			}
			list = append(list, node)
		}
	}
	add(o.ControlPlanes, config.RoleControlPlane, "cp")
	add(o.Workers, config.RoleWorker, "worker")
	return list
}

// apart is the first of the networks that does not overlap the subnet.
func apart(subnet netip.Prefix, networks ...string) netip.Prefix {
	for _, text := range networks {
		if network := netip.MustParsePrefix(text); !network.Overlaps(subnet) {
			return network
		}
	}
	return netip.MustParsePrefix(networks[0]) // validate will say that it overlaps
}
