//go:build linux

package world

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/sandbox/profile"
)

// inWorld is where the registry of these tests is, and broken where one is that has lost its disk; nobody is at any other address.
const inWorld, broken = "192.168.77.13:5000", "192.168.77.14:5000"

// newRuntime is a node's whose configuration has these mirrors, with a registry that has the image blog:1 and speaks HTTP.
func newRuntime(t *testing.T, mirrors ...string) *runtime {
	t.Helper()
	handler, err := registry.New(registry.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]http.Handler{inWorld: handler, broken: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	})}
	reach := map[string]string{}
	for place, handler := range served {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		reach[place] = server.Listener.Addr().String()
	}
	reference, err := name.ParseReference(reach[inWorld] + "/blog:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, empty.Image); err != nil {
		t.Fatal(err)
	}
	return &runtime{
		has: func(address netip.Addr) bool {
			return address == netip.MustParseAddrPort(inWorld).Addr() || address == netip.MustParseAddrPort(broken).Addr()
		},
		endpoints: func(node, registry string) []url.URL {
			if node != "worker-1" {
				t.Errorf("%s is asked for", node)
			}
			var list []url.URL
			for _, mirror := range mirrors {
				if mirror == "itself" {
					mirror = "https://" + registry + "/v2"
				}
				parsed, err := url.Parse(mirror)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, *parsed)
			}
			return list
		},
		dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, reach[address])
		},
	}
}

func TestARegistryIsAskedWhereTheNodesConfigurationSays(t *testing.T) {
	const plain = "http://" + inWorld + "/v2"
	for name, c := range map[string]struct {
		mirrors []string
		image   string
		want    string // "": it is there
	}{
		"without a mirror, by TLS":             {[]string{"itself"}, inWorld + "/blog:1", `failed to do request: Head "https://192.168.77.13:5000/v2/blog/manifests/1": http: server gave HTTP response to HTTPS client`},
		"as its own mirror, without TLS":       {[]string{plain, "itself"}, inWorld + "/blog:1", ""},
		"what nobody has pushed":               {[]string{plain, "itself"}, inWorld + "/blog:2", inWorld + "/blog:2: not found"},
		"by a mirror alone":                    {[]string{plain}, inWorld + "/blog:2", inWorld + "/blog:2: not found"},
		"a mirror outside has nothing of it":   {[]string{"https://mirror.example.com/v2", "itself"}, inWorld + "/blog:1", "server gave HTTP response to HTTPS client"},
		"only such a mirror":                   {[]string{"https://mirror.example.com/v2"}, inWorld + "/blog:1", inWorld + "/blog:1: not found"},
		"a mirror that fails, then itself":     {[]string{"http://" + broken + "/v2", plain}, inWorld + "/blog:1", ""},
		"a failure tells more than an absence": {[]string{plain, "http://" + broken + "/v2"}, inWorld + "/blog:2", "unexpected status from HEAD request to http://192.168.77.14:5000/v2/blog/manifests/2?ns=192.168.77.13%3A5000: 502 Bad Gateway"},
		"a mirror in the world alone":          {[]string{plain}, "ghcr.io/someone/else:3", "ghcr.io/someone/else:3: not found"},
		"a mirror in the world of Docker Hub":  {[]string{plain}, "blog:1", "docker.io/blog:1: not found"},
		"a path of its own":                    {[]string{plain + "/proxy"}, "ghcr.io/blog:1", "ghcr.io/blog:1: not found"},
		"such a mirror that has it":            {[]string{plain}, "ghcr.io/blog:1", ""},
		"or else the registry outside":         {[]string{plain, "itself"}, "ghcr.io/someone/else:3", ""},
		"a registry outside":                   {[]string{"itself"}, "ghcr.io/someone/else:3", ""},
		"at an address where nobody is":        {[]string{"itself"}, "192.168.77.99:5000/blog:1", ""},
		"Docker Hub":                           {[]string{"https://registry-1.docker.io/v2"}, "someone/else:3", ""},
		"a name that nobody can have":          {[]string{"itself"}, "registry.invalid/blog:1", `failed to do request: Head "https://registry.invalid/v2/blog/manifests/1": dial tcp: lookup registry.invalid: no such host`},
		"with a port":                          {[]string{"itself"}, "registry.invalid:5000/blog:1", "lookup registry.invalid: no such host"},
		"no name of an image":                  {[]string{plain}, inWorld + "/Blog:1", "could not parse reference"},
	} {
		err := newRuntime(t, c.mirrors...).exists(t.Context(), "worker-1", c.image)
		begins := fmt.Sprintf("failed to pull and unpack image %q", profile.Full(c.image))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), begins) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestARegistryThatIsGoneIsToldOf(t *testing.T) {
	r := newRuntime(t, "http://"+inWorld+"/v2")
	r.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:1")
	}
	if err := r.exists(t.Context(), "worker-1", inWorld+"/blog:1"); err == nil || !strings.Contains(err.Error(), "failed to do request: Head") || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}
