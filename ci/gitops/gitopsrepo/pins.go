package gitopsrepo

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	gitopstemplate "tazlab.net/castle/gitops-template"
)

// pins are the versions of everything that is installed.
type pins struct {
	Charts map[string]struct {
		Version    string `yaml:"version"`
		Repository string `yaml:"repository"`
	} `yaml:"charts"`
	Images map[string]struct {
		Repository string `yaml:"repository"`
		Tag        string `yaml:"tag"`
	} `yaml:"images"`
}

func readPins() (pins, error) {
	var p pins
	data, err := gitopstemplate.Files.ReadFile("pins.yaml")
	if err != nil {
		return p, err
	}
	return p, yaml.Unmarshal(data, &p)
}

// chart is one chart as a source and a release name it.
type chart struct {
	Name, Version, URL          string
	OCI                         bool
	Release, Namespace, Account string // of a release
}

const ociScheme = "oci://"

// chart finds a chart, at its own repository or at the mirror of all charts.
func (p pins) chart(name, mirror string) (chart, error) {
	pin, known := p.Charts[name]
	if !known {
		return chart{}, fmt.Errorf("pins.yaml has no chart %s", name)
	}
	c := chart{Name: name, Version: pin.Version, URL: pin.Repository}
	if mirror != "" {
		c.URL = strings.TrimSuffix(mirror, "/")
	}
	if c.OCI = strings.HasPrefix(c.URL, ociScheme); c.OCI {
		c.URL += "/" + name
	}
	return c, nil
}

// image is an image with its tag; that of Talos' tools is the cluster's.
func (p pins) image(name, talos string) (string, error) {
	pin, known := p.Images[name]
	if !known {
		return "", fmt.Errorf("pins.yaml has no image %s", name)
	}
	if pin.Tag == "" {
		pin.Tag = talos
	}
	return pin.Repository + ":" + pin.Tag, nil
}
