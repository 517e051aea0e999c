package images

import "strings"

// Recipes of stand-ins that an entry may name in its field standIn.
const (
	StandInNone     = "none"     // no stand-in is made
	StandInGolang   = "golang"   // Debian, git, OpenSSH client and the Go toolchain
	StandInHugo     = "hugo"     // as golang, and Hugo with Node.js and Dart Sass
	StandInNginx    = "nginx"    // Debian and its nginx
	StandInChromium = "chromium" // Debian and its Chromium
	StandInTool     = "tool"     // programs built from Go modules and nothing else; the entry's key says which
)

// Image is one entry of images.yaml.
type Image struct {
	Key       string   // how the code asks for it, unique in the list
	Name      string   // full name with registry, "docker.io/library/golang"
	Tag       string   // exact version, "1.26.4-bookworm"
	Digest    string   // upstream's index, "sha256:…", or "" where it is not known
	Purpose   string   // one sentence for a person
	Platforms []string // "os/arch", at least one
	StandIn   string   // one of the StandIn constants
	Group     string   // of pipelines that alone pull it, or "" where publishing does
}

// Reference is the name and tag, by which a stand-in is known, too.
func (i Image) Reference() string { return i.Name + ":" + i.Tag }

// Pinned is the real image: name, tag and digest, or name and tag where the list has no digest.
func (i Image) Pinned() string {
	if i.Digest == "" {
		return i.Reference()
	}
	return i.Reference() + "@" + i.Digest
}

// Registry is the host part of the name, "docker.io".
func (i Image) Registry() string {
	host, _, _ := strings.Cut(i.Name, "/")
	return host
}

// Repository is the name without its registry, "library/golang": the path under which a mirror holds the image.
func (i Image) Repository() string {
	_, path, _ := strings.Cut(i.Name, "/")
	return path
}
