package config

import (
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tazlab.net/castle/ci/base/strictyaml"
)

const mirrors = "talos.registryMirrors"

// anyRegistry is Talos's own word for each registry that no other mirror stands for.
const anyRegistry = "*"

// registryName is a host as it begins an image's name.
var registryName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// registryMirrors checks the registries, and where each of their mirrors is.
func (k *checker) registryMirrors() {
	list := k.c.Talos.RegistryMirrors
	if k.Has(mirrors) && len(list) == 0 {
		k.Mistake(mirrors, "names no registry; %s", facts.Of(mirrors).Hint)
	}
	for _, registry := range slices.Sorted(maps.Keys(list)) {
		at := strictyaml.Entry(mirrors, registry)
		if !k.Has(at) {
			continue
		}
		k.registry(at, registry)
		if len(list[registry]) == 0 {
			k.Mistake(at, "has no mirror; %s", facts.Of(mirrors).Hint)
		}
		for i, address := range list[registry] {
			item := at + "[" + strconv.Itoa(i) + "]"
			switch u, err := url.Parse(address); {
			case err == nil && u.User != nil:
				k.Mistake(item, "has credentials in it, and castle gives machines none for a mirror; change them, and let the nodes read the mirror without")
			case k.web(item, address, true) != nil && u.Host == registry && u.Scheme == "https": // without TLS, it is asked as a mirror of its own alone
				k.Mistake(item, "%s is the registry itself, which is asked after its mirrors anyway; remove it", address)
			}
			if slices.Contains(list[registry][:i], address) {
				k.Mistake(item, "%s stands in the list already; remove it", address)
			}
		}
	}
}

func (k *checker) registry(at, name string) {
	host := name
	if h, port, err := net.SplitHostPort(name); err == nil {
		host = h
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			host = ""
		}
	}
	switch {
	case name == anyRegistry || registryName.MatchString(host):
	case strings.Contains(name, "/"):
		trimmed, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://"), "/")
		k.Mistake(at, "%q is more than a registry; did you mean %s?", name, trimmed)
	default:
		k.Mistake(at, "%q is no registry; write the host that names of images begin with, such as docker.io, or \"*\" for all others", name)
	}
}
