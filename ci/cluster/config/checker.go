package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"tazlab.net/castle/ci/base/strictyaml"
)

// checker finds what is wrong with a description whose fields could be read. A field that is missing or could not be read has
// been named already, and no rule that needs it speaks of it again.
type checker struct {
	*strictyaml.Reader
	c      *Cluster
	folder string // its name, "" where it is not known
	beside string // the folder itself, for the files that the description names
}

func (k *checker) check() {
	k.name()
	k.network()
	k.nodes()
	k.roles()
	k.pool()
	k.internalNetworks()
	switch kindOf(k.c.Platform) {
	case PlatformAWS:
		k.aws()
	case PlatformTalos:
		k.machines()
	default:
		k.proxmox()
	}
	k.foreign()
	k.talos()
	k.patches()
	k.kubernetes()
	k.cni()
	k.storage()
	k.gitops()
	k.secrets()
	k.state()
}

// dnsLabel checks a name that becomes part of host names, Kubernetes names and folders.
func (k *checker) dnsLabel(path, name string) {
	if !k.Has(path) || label.MatchString(name) {
		return
	}
	fixed := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-"), "-")
	if label.MatchString(fixed) {
		k.Mistake(path, "%q is not a DNS label; did you mean %s?", name, fixed)
		return
	}
	k.Mistake(path, "%q is not a DNS label; write 1 to 63 lower-case letters, digits and inner hyphens", name)
}

// word checks a text that can only be one of a few words.
func (k *checker) word(path, value string) {
	known := facts.Of(path).Words
	if k.Has(path) && !slices.Contains(known, value) {
		k.Mistake(path, "%q is unknown; %s", value, strictyaml.DidYouMean(value, known, "known are "))
	}
}

// form checks a text against its form; what says in words what it should be.
func (k *checker) form(path, value, what string) {
	if k.Has(path) && !facts.Of(path).Form.MatchString(value) {
		k.Mistake(path, "%q is not %s", value, what)
	}
}

// proxmoxNode says what the name of a host is.
const proxmoxNode = "the name of a Proxmox node; write letters, digits and inner hyphens"

// empty records that a list which must hold something holds nothing.
func (k *checker) empty(path string) {
	k.Mistake(path, "is an empty list; %s", facts.Of(path).Hint)
}

func (k *checker) name() {
	k.dnsLabel("name", k.c.Name)
	if k.Has("name") && label.MatchString(k.c.Name) && k.folder != "" && k.folder != k.c.Name {
		k.Mistake("name", "%s is not the name of the folder, %s; a cluster and its folder have one name", k.c.Name, k.folder)
	}
	k.word("platform", k.c.Platform)
	if k.Has("name") && kindOf(k.c.Platform) == PlatformProxmox && reserved(k.c.Name) {
		k.Mistake("name", "%s is reserved: every cluster's VMs have the tags %s, %s and %s, and those of cluster NAME have "+
			"%s-NAME; choose another name. To replace a cluster that has this one, destroy it with the version of castle "+
			"that created it, then create it under another name",
			k.c.Name, commonTag, RoleControlPlane, RoleWorker, commonTag)
	}
}

// web checks an address of a service: https (or http where allowed), a host, and no credentials, which would end up in
// logs and states.
func (k *checker) web(path, text string, http bool) *url.URL {
	if !k.Has(path) {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err == nil && u.User != nil, err != nil && strings.Contains(text, "@"):
		// The text holds a secret: it must not be shown.
		k.Mistake(path, "has credentials in it; remove them, they come from the cluster's secrets")
	case err != nil || u.Host == "" || u.Scheme == "":
		k.Mistake(path, "%q is not a URL; write it as https://host/", text)
	case u.Scheme == "http" && !http:
		k.Mistake(path, "%s is not encrypted; did you mean https://%s?", text, strings.TrimPrefix(text, "http://"))
	case u.Scheme != "https" && u.Scheme != "http":
		k.Mistake(path, "%s is not reached by https; write it as https://host/", text)
	case u.RawQuery != "" || u.Fragment != "":
		k.Mistake(path, "%s has a query or a fragment; remove it", text)
	default:
		return u
	}
	return nil
}

// use is an address that is taken, and by what.
type use struct {
	address netip.Addr
	owner   string
}

// uses lists what stands in the nodes' network: services by their literal addresses, the virtual IP, the nodes. A service
// at the address of another one is not listed: a gateway often answers DNS too.
func (k *checker) uses() []use {
	var list []use
	add := func(path string, a netip.Addr, owner string) {
		if k.Has(path) && a.IsValid() {
			list = append(list, use{a, owner})
		}
	}
	service := func(path string, a netip.Addr, owner string) {
		if !slices.ContainsFunc(list, func(u use) bool { return u.address == a }) {
			add(path, a, owner)
		}
	}
	service("network.gateway", k.c.Network.Gateway, "the gateway")
	for i, a := range k.c.Network.DNS {
		path := fmt.Sprintf("network.dns[%d]", i)
		service(path, a, path)
	}
	for _, host := range []struct{ path, url string }{
		{"proxmox.url", k.c.Proxmox.URL}, {"gitops.url", k.c.GitOps.URL},
		{"secrets.infisical.url", k.c.Secrets.Infisical.URL}, {"state.s3.endpoint", k.c.State.S3.Endpoint},
	} {
		if u, err := url.Parse(host.url); err == nil {
			if a, err := netip.ParseAddr(u.Hostname()); err == nil {
				service(host.path, a, "the host in "+host.path)
			}
		}
	}
	add("endpoint", k.c.Endpoint, "the virtual IP (endpoint)")
	for i, n := range k.c.Nodes {
		add(fmt.Sprintf("nodes[%d].address", i), n.Address, nodeLabel(i, n))
	}
	return list
}

// free is the first address after the given one that nothing uses, as a proposal: ", such as 192.168.1.216", or "".
func (k *checker) free(after netip.Addr) string {
	if !k.Has("network.subnet") {
		return ""
	}
	subnet := k.c.Network.Subnet
	taken := k.uses()
	for a := after; ; {
		if a = a.Next(); !a.IsValid() || !subnet.Contains(a) || a == lastAddress(subnet) {
			return ""
		}
		used := slices.ContainsFunc(taken, func(u use) bool { return u.address == a })
		for _, entry := range k.c.LoadBalancer.Pool {
			if s, problem := readPool(entry); problem == "" {
				used = used || s.contains(a)
			}
		}
		if !used {
			return ", such as " + a.String()
		}
	}
}
