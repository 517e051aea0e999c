package charts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// component is the label that says which part of a project an object is of.
const component = "app.kubernetes.io/component"

// describe writes the chart's metadata into the definitions of one source, which are the files of a folder. Helm installs a chart's
// crds folder as it is: what the charts' own templates put on objects by themselves, these get only here.
func (c Chart) describe(crds CRDs, folder string) error {
	if len(c.Metadata.Labels)+len(c.Metadata.Annotations) == 0 {
		return nil
	}
	labels := map[string]string{component: crds.Tool}
	maps.Copy(labels, c.Metadata.Labels)
	return filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		described, err := withMetadata(text, Metadata{Labels: labels, Annotations: c.Metadata.Annotations})
		if err != nil {
			return fmt.Errorf("definitions %s: %w", filepath.Base(file), err)
		}
		return os.WriteFile(file, described, 0o644)
	})
}

// withMetadata adds to the metadata of each object in a stream of YAML.
func withMetadata(text []byte, metadata Metadata) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
			continue
		}
		object := document.Content[0]
		about := value(object, "metadata")
		if about.Kind != yaml.MappingNode {
			return nil, errors.New("an object has no metadata")
		}
		set(about, "labels", metadata.Labels)
		set(about, "annotations", metadata.Annotations)
		if err := encoder.Encode(&document); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), encoder.Close()
}

// set gives the mapping below a key some entries more, or others.
func set(mapping *yaml.Node, key string, entries map[string]string) {
	if len(entries) == 0 {
		return
	}
	below := value(mapping, key)
	if below.Kind != yaml.MappingNode {
		below = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		mapping.Content = append(mapping.Content, text(key), below)
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if one := value(below, name); one.Kind == yaml.ScalarNode {
			one.SetString(entries[name])
			continue
		}
		below.Content = append(below.Content, text(name), text(entries[name]))
	}
}

func text(s string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(s)
	return node
}
