package talos

import (
	"net"
	"net/url"
	"path"
	"strings"
)

// Endpoints are where a node's container runtime asks for images of a registry, in this order: each is the URL that "/<repository>/manifests/…"
// follows. They are those of the configuration that the node has now, as a real one takes other mirrors without a restart. Sources:
// siderolabs/talos v1.13, internal/pkg/containers/cri/containerd/hosts.go, which writes a folder with a hosts.toml for each registry that has
// mirrors or TLS of its own and "_default" for "*"; containerd v2.1, core/remotes/docker/config/hosts.go and config_unix.go, which takes the
// first of the registry's own folder and "_default". Certificates and credentials of registries are not played.
func (f *Fleet) Endpoints(node, registry string) []url.URL {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.machines {
		if m.conf != nil && m.conf.hostname == node {
			return m.conf.endpoints(registry)
		}
	}
	return []url.URL{itself(registry)}
}

func (s *settings) endpoints(registry string) []url.URL {
	mirrors := s.provider.RegistryMirrorConfigs()
	all, has := mirrors[registry]
	if own := s.provider.RegistryTLSConfigs()[registry]; !has && (own == nil || own.CA() == nil && own.ClientIdentity() == nil && !own.InsecureSkipVerify()) {
		all, has = mirrors["*"]
	}
	if !has {
		return []url.URL{itself(registry)}
	}
	var endpoints []url.URL
	for _, mirror := range all.Endpoints() {
		endpoint, err := url.Parse(mirror.Endpoint())
		if err != nil {
			continue // a configuration with one is not accepted
		}
		if endpoint.Path != "" {
			endpoint.Path = path.Clean(endpoint.Path)
		}
		if !mirror.OverridePath() && !strings.HasSuffix(endpoint.Path, "/v2") {
			endpoint.Path += "/v2"
		}
		endpoints = append(endpoints, *endpoint)
	}
	if all.SkipFallback() && len(endpoints) > 0 {
		return endpoints
	}
	return append(endpoints, itself(registry))
}

// itself is a registry that no mirror stands for. One on the node itself is asked without TLS, where its port does not say otherwise; it would
// be asked with TLS before.
func itself(registry string) url.URL {
	host, port, err := net.SplitHostPort(registry)
	if err != nil {
		host = registry
	}
	scheme := "https"
	switch {
	case registry == "docker.io":
		registry = "registry-1.docker.io"
	case (host == "localhost" || net.ParseIP(host).IsLoopback()) && port != "" && port != "443":
		scheme = "http"
	}
	return url.URL{Scheme: scheme, Host: registry, Path: "/v2"}
}
