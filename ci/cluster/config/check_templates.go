package config

import (
	"maps"
	"slices"
	"strings"

	"tazlab.net/castle/ci/base/strictyaml"
)

// Clone is which template a node is cloned from.
type Clone struct {
	Template int
	Host     string // that the template has to stand on
}

// Across says whether the clone goes to another Proxmox node than its template's, which takes shared storage.
func (c Clone) Across(n Node) bool { return c.Host != n.Host }

// CloneOf is what a node is cloned from: the template of its host, or the one that there is for all.
func (p Proxmox) CloneOf(n Node) Clone {
	if id, has := p.Templates[n.Host]; has {
		return Clone{id, n.Host}
	}
	if p.TemplateHost != "" {
		return Clone{p.Template, p.TemplateHost}
	}
	return Clone{p.Template, n.Host}
}

// TemplateIDs are those of all templates that nodes are cloned from, each once.
func (c *Cluster) TemplateIDs() []int {
	var list []int
	for _, node := range c.Nodes {
		list = append(list, c.Proxmox.CloneOf(node).Template)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// HasTemplates says whether each of these Proxmox nodes has a template of its own.
func (c *Cluster) HasTemplates(hosts []string) bool {
	return !slices.ContainsFunc(hosts, func(host string) bool { return c.Proxmox.Templates[host] == 0 })
}

// templates checks that each node has one to be cloned from.
func (k *checker) templates() {
	p := k.c.Proxmox
	if k.Has("proxmox.template") {
		k.template("proxmox.template", p.Template)
	}
	k.form("proxmox.templateHost", p.TemplateHost, proxmoxNode)
	if k.Has("proxmox.templateHost") && !k.Has("proxmox.template") {
		k.Mistake("proxmox.templateHost", "says where template stands, which is not there; write template, or remove this")
	}
	byID := map[int]string{}
	for _, host := range slices.Sorted(maps.Keys(p.Templates)) {
		at := strictyaml.Entry("proxmox.templates", host)
		if !k.Has(at) {
			continue
		}
		k.template(at, p.Templates[host])
		if other, twice := byID[p.Templates[host]]; twice {
			k.Mistake(at, "%d is the template of %s already, and an id is one VM's; write its own", p.Templates[host], other)
		}
		byID[p.Templates[host]] = host
	}
	if k.Broken("proxmox.template") || k.Broken("proxmox.templates") || k.Broken("proxmox.templateHost") || !k.Has("nodes") {
		return
	}
	var without []string // a template of their own
	for _, n := range k.c.Nodes {
		if _, has := p.Templates[n.Host]; !has && n.Host != "" && !slices.Contains(without, n.Host) {
			without = append(without, n.Host)
		}
	}
	slices.Sort(without)
	switch hosts := strings.Join(without, ", "); {
	case len(without) > 0 && !k.Has("proxmox.template"):
		k.Mistake("proxmox", "template is missing for %s; write the VM id of the Talos template there, such as templates: {%s: 900}", hosts, without[0])
	case len(without) > 1 && p.TemplateHost == "":
		k.Mistake("proxmox.template", "%d stands on one Proxmox node, and nodes on %s would be cloned from it; write a template of each as templates: {%s: %[1]d, …}, "+
			"or templateHost where its disks and proxmox.storage are shared by all of them", p.Template, hosts, without[0])
	}
}

func (k *checker) template(path string, id int) {
	ids := k.c.VMIDs
	switch {
	case id < firstID || id > lastID:
		k.Mistake(path, "%d is not an id of Proxmox, which go from %d to %d; write the template's", id, firstID, lastID)
	case k.Has("vmIDs") && ids.First <= id && id <= ids.Last:
		k.Mistake(path, "%d is within the cluster's own range, %d to %d, which a wipe empties; give the template an id outside it", id, ids.First, ids.Last)
	}
}
