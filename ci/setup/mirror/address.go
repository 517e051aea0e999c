package mirror

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"tazlab.net/castle/ci/base/forward"
	"tazlab.net/castle/ci/setup/images"
)

// address is where a mirror is: a registry's host and port, and maybe a path below which it keeps the images.
type address struct {
	host  string // "localhost:5000"
	path  string // "team/mirror", or ""
	plain bool   // HTTP without TLS
}

// parseAddress reads "registry.example.com/team/mirror". Plain HTTP is taken for loopback, or where the address says
// so ("http://10.0.0.1:5000"); everything else is HTTPS.
func parseAddress(text string) (address, error) {
	rest, plain := strings.CutPrefix(text, "http://")
	rest, secure := strings.CutPrefix(rest, "https://")
	host, path, _ := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
	if host == "" || strings.ContainsAny(rest, "@ ") || plain && secure {
		return address{}, errors.New("a mirror's address is host:port or host:port/path, with http:// in front for one without TLS; " +
			"credentials come from docker login")
	}
	return address{host: host, path: path, plain: plain || !secure && loopback(host)}, nil
}

func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return forward.IsLoopback(strings.Trim(host, "[]"))
}

// String is the address without its scheme.
func (a address) String() string {
	if a.path == "" {
		return a.host
	}
	return a.host + "/" + a.path
}

// tag is where the mirror at a holds the image.
func (a address) tag(image images.Image) (name.Tag, error) {
	options := []name.Option{name.StrictValidation}
	if a.plain {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(a.String()+"/"+image.Repository()+":"+image.Tag, options...)
	if err != nil {
		return name.Tag{}, fmt.Errorf("%s: %w", image.Key, err)
	}
	return tag, nil
}

// distinct refuses a list in which two images would have one name at a mirror, since that leaves the registry out.
func distinct(list images.List) error {
	first := map[string]images.Image{}
	var clashes []error
	for _, image := range list {
		at := image.Repository() + ":" + image.Tag
		if other, ok := first[at]; ok {
			clashes = append(clashes, fmt.Errorf("%s (%s) and %s (%s) would both be %s at a mirror",
				other.Key, other.Reference(), image.Key, image.Reference(), at))
			continue
		}
		first[at] = image
	}
	return errors.Join(clashes...)
}
