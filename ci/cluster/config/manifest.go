package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Manifest is a file of Kubernetes objects beside the description. Handed over, it is its name and its text.
type Manifest struct {
	Name string
	text string
}

// Text is what is in the file.
func (m Manifest) Text() string { return m.text }

type handedManifest struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// MarshalJSON writes name and text.
func (m Manifest) MarshalJSON() ([]byte, error) { return json.Marshal(handedManifest{m.Name, m.text}) }

// UnmarshalJSON reads what MarshalJSON has written.
func (m *Manifest) UnmarshalJSON(data []byte) error {
	var handed handedManifest
	err := json.Unmarshal(data, &handed)
	*m = Manifest{handed.Name, handed.Text}
	return err
}

// readManifest takes a manifest by its file's name, or whole, as a rendered description has it.
func readManifest(node *yaml.Node) (Manifest, string) {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!str" && node.Value != "" {
		return Manifest{Name: node.Value}, ""
	}
	m := Manifest{scalar(node, "name"), scalar(node, "text")}
	if node.Kind != yaml.MappingNode || m.Name == "" || m.text == "" {
		return Manifest{}, "must be the name of a file beside cluster.yaml, such as cilium.yaml"
	}
	return m, ""
}

// cni checks who brings the pods' network.
func (k *checker) cni() {
	of := k.c.Kubernetes
	k.word("kubernetes.cni", of.CNI)
	switch {
	case of.CNI == CNINone && len(of.CNIManifests) == 0 && !k.Broken("kubernetes.cniManifests"):
		k.Mistake("kubernetes.cni", "with none nobody brings the network that pods need, those of Flux among them; write cniManifests: [cilium.yaml], a file beside cluster.yaml with the CNI's manifests")
	case of.CNI == CNIFlannel && k.Has("kubernetes.cniManifests"):
		k.Mistake("kubernetes.cniManifests", "are of no use beside flannel, which Talos brings itself; write cni: none, or remove them")
	}
	for i := range of.CNIManifests {
		path := fmt.Sprintf("kubernetes.cniManifests[%d]", i)
		if k.Has(path) {
			k.manifest(path, &k.c.Kubernetes.CNIManifests[i])
		}
	}
	if text, err := k.c.HandOver(); err == nil && len(text) > mostHanded {
		k.Mistake("", "is %d KiB with its patches and manifests, and %d KiB can be handed to the layers; have the CNI's own operator bring what is not needed at the beginning", len(text)>>10, mostHanded>>10)
	}
}

// mostHanded is a little less than what Linux takes as one variable of a program's environment (MAX_ARG_STRLEN, 128 KiB).
const mostHanded = 120 << 10

// manifest reads a manifest's file, and looks whether it holds objects of Kubernetes.
func (k *checker) manifest(path string, m *Manifest) {
	if m.text == "" {
		if !k.inside(path, m.Name, "cilium.yaml") {
			return
		}
		data, err := os.ReadFile(filepath.Join(k.beside, m.Name))
		if err != nil {
			k.Mistake(path, "there is no file %s beside cluster.yaml; write the CNI's manifests there, such as by helm template cilium cilium/cilium > %[1]s", m.Name)
			return
		}
		m.text = string(data)
	}
	objects := 0
	for decoder := yaml.NewDecoder(strings.NewReader(m.text)); ; {
		var document struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string `yaml:"kind"`
			Metadata   struct {
				Name string `yaml:"name"`
			} `yaml:"metadata"`
		}
		var node yaml.Node
		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			if objects == 0 {
				k.Mistake(path, "%s holds no objects of Kubernetes; write the CNI's manifests there", m.Name)
			}
			return
		case err != nil:
			k.Mistake(path, "%s is not YAML: %s", m.Name, strings.TrimPrefix(err.Error(), "yaml: "))
			return
		}
		if len(node.Content) == 0 || node.Content[0].Tag == "!!null" { // such as a comment alone
			continue
		}
		if node.Decode(&document) != nil || document.APIVersion == "" || document.Kind == "" || document.Metadata.Name == "" {
			k.Mistake(path, "%s:%d is no object of Kubernetes: it needs apiVersion, kind and metadata.name", m.Name, node.Content[0].Line)
			return
		}
		objects++
	}
}
