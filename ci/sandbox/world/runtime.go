//go:build linux

package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"tazlab.net/castle/ci/sandbox/profile"
)

// runtime is the nodes' container runtime, as far as it asks registries whether an image is there. Who is asked in which order, by HTTPS or
// HTTP, which answer counts and with what words it is told, is by containerd v2.1: core/remotes/docker/resolver.go, client/pull.go.
type runtime struct {
	has       func(netip.Addr) bool // whether somebody is at an address of the world
	endpoints func(node, registry string) []url.URL
	dial      func(ctx context.Context, network, address string) (net.Conn, error) // nil: as always
}

// accept is what containerd asks a registry for.
const accept = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json, " +
	"application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, */*"

// exists asks for an image where a node's configuration says so: its error is what the node says in place of a pull. What is outside the world
// cannot be asked. Images of registries there are taken to be there; those of a registry in the world are in no mirror outside.
func (r *runtime) exists(ctx context.Context, node, image string) error {
	full := profile.Full(image)
	registry, _, _ := strings.Cut(full, "/")
	failed := func(err error) error {
		return fmt.Errorf("failed to pull and unpack image %q: failed to resolve reference %[1]q: %w", full, err)
	}
	said, weight := fmt.Errorf("%s: not found", full), 0
	for _, endpoint := range r.endpoints(node, registry) {
		if !r.asked(endpoint.Host) {
			if r.asked(registry) {
				continue
			}
			return nil
		}
		reference, err := name.ParseReference(full)
		if err != nil {
			return fmt.Errorf("failed to pull and unpack image %q: %w", full, err)
		}
		endpoint.Path = path.Join("/", endpoint.Path, reference.Context().RepositoryStr(), "manifests", reference.Identifier())
		if endpoint.Host != registry {
			endpoint.RawQuery = url.Values{"ns": {registry}}.Encode()
		}
		// An answer tells more than none, and another answer more than that there is no such image.
		status, err := r.head(ctx, endpoint)
		switch {
		case err != nil && weight < 1:
			said, weight = fmt.Errorf("failed to do request: %w", err), 1
		case err != nil:
		case status < 300:
			return nil
		case status == http.StatusNotFound && weight < 2:
			said, weight = fmt.Errorf("%s: not found", full), 2
		case status != http.StatusNotFound && weight < 3:
			said, weight = fmt.Errorf("unexpected status from HEAD request to %s: %d %s", &endpoint, status, http.StatusText(status)), 3
		}
	}
	return failed(said)
}

// asked tells whether it is known here what a host answers. A name below "invalid" is one that no name server knows (RFC 6761, 6.4).
func (r *runtime) asked(host string) bool {
	if nowhere(host) {
		return true
	}
	at, err := netip.ParseAddrPort(host)
	if err != nil {
		address, err := netip.ParseAddr(host)
		return err == nil && r.has(address)
	}
	return r.has(at.Addr())
}

func nowhere(host string) bool {
	name, _, _ := strings.Cut(host, ":")
	return strings.HasSuffix(name, ".invalid")
}

func (r *runtime) head(ctx context.Context, at url.URL) (status int, err error) {
	if nowhere(at.Host) {
		return 0, &url.Error{Op: "Head", URL: at.String(), Err: errors.New("dial tcp: lookup " + at.Hostname() + ": no such host")}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, at.String(), nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept", accept)
	client := http.Client{Transport: &http.Transport{DialContext: r.dial, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}
