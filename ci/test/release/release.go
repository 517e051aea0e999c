// Package release makes, for tests and benchmarks, what a user of a release has: a module that names the image with castle's
// programs, and the repository of examples/blog with addresses that can be reached here.
package release

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// NameImage writes castle's image into the images.yaml of the module in a folder. Published is what `dagger call image publish`
// printed: name, tag and digest.
func NameImage(module, published string) error {
	named, digest, found := strings.Cut(strings.TrimSpace(published), "@")
	colon := strings.LastIndex(named, ":")
	if !found || colon < strings.LastIndex(named, "/") {
		return fmt.Errorf("dagger call image publish says %q, which is no name with a tag and a digest", published)
	}
	list, err := os.OpenFile(filepath.Join(module, ".dagger", "images.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	image, tag := named[:colon], named[colon+1:]
	_, err = fmt.Fprintf(list, `
  - key: castle
    image: %s
    tag: %s
    digest: %s
    purpose: the programs of this release
    platforms: [linux/amd64, linux/arm64]
    standIn: none
`, image, tag, digest)
	return errors.Join(err, list.Close())
}

// Blog is what the example leaves to its user.
type Blog struct {
	GitOps   string // URL of the repository that Flux follows
	Manifest string // its file that names the image
	Image    string
	User     string // of the registry
}

// Settings is the castle.yaml of examples/blog, in castle's working tree, filled in.
func (b Blog) Settings(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "examples", "blog", "castle.yaml"))
	if err != nil {
		return "", err
	}
	filled := string(text)
	for _, change := range [][2]string{
		{"https://github.com/OWNER/cluster.git", b.GitOps},
		{"apps/blog/deployment.yaml", b.Manifest},
		{"ghcr.io/me/blog", b.Image},
		{"username: me", "username: " + b.User},
	} {
		if strings.Count(filled, change[0]) != 1 {
			return "", fmt.Errorf("examples/blog/castle.yaml has %q %d times, want once", change[0], strings.Count(filled, change[0]))
		}
		filled = strings.Replace(filled, change[0], change[1], 1)
	}
	return filled, nil
}
