package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Patch is a strategic merge patch of a machine configuration: YAML where it is applied, as a mapping or as text, or the name of a file
// beside the description. Handed over, it is its text.
type Patch struct {
	text string
	file string     // that the text comes from; "" where it stands in the description
	line int        // of the description, that the text begins on or the file is named on
	node *yaml.Node // where it stands as a mapping, whose text has other lines
}

// Text is the patch's YAML, of one or several documents.
func (p Patch) Text() string { return p.text }

// Place names a line of the patch's text for a person: "cluster.yaml:31", "patches/registry.yaml:3".
func (p Patch) Place(line int) string {
	switch {
	case p.file != "":
		return fmt.Sprintf("%s:%d", p.file, line)
	case p.node != nil:
		return fmt.Sprintf("%s:%d", File, p.line)
	}
	return fmt.Sprintf("%s:%d", File, p.line+line-1)
}

// MarshalJSON writes the text.
func (p Patch) MarshalJSON() ([]byte, error) { return json.Marshal(p.text) }

// UnmarshalJSON reads what MarshalJSON has written.
func (p *Patch) UnmarshalJSON(data []byte) error {
	*p = Patch{}
	return json.Unmarshal(data, &p.text)
}

// readPatch takes a patch as it stands in a description. A file is read later, when it is known where it is.
func readPatch(node *yaml.Node) (Patch, string) {
	switch {
	case node.Kind == yaml.MappingNode:
		var value any
		if err := node.Decode(&value); err != nil {
			return Patch{}, err.Error()
		}
		text, err := yaml.Marshal(value)
		if err != nil {
			return Patch{}, err.Error()
		}
		return Patch{text: string(text), line: node.Line, node: node}, ""
	case node.Kind == yaml.ScalarNode && node.Tag == "!!str" && strings.ContainsAny(node.Value, "\n:"):
		line := node.Line
		if node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			line++ // the text begins below the sign for it
		}
		return Patch{text: node.Value, line: line}, ""
	case node.Kind == yaml.ScalarNode && node.Tag == "!!str" && node.Value != "":
		return Patch{file: node.Value, line: node.Line}, ""
	case node.Kind == yaml.SequenceNode:
		return Patch{}, "is a list, as JSON patches are; write a strategic merge patch, such as {machine: {sysctls: {vm.max_map_count: \"262144\"}}}"
	default:
		return Patch{}, "must be a patch, such as {machine: {sysctls: {vm.max_map_count: \"262144\"}}}, or the name of a file beside cluster.yaml"
	}
}

// placed are all patches of a description with their paths; a patch may be changed there.
func (c *Cluster) placed(do func(path string, patch *Patch)) {
	for _, list := range []struct {
		path    string
		patches []Patch
	}{{"talos.patches.all", c.Talos.Patches.All}, {"talos.patches.controlplane", c.Talos.Patches.ControlPlane}, {"talos.patches.worker", c.Talos.Patches.Worker}} {
		for i := range list.patches {
			do(fmt.Sprintf("%s[%d]", list.path, i), &list.patches[i])
		}
	}
	for i, node := range c.Nodes {
		for j := range node.Patches {
			do(fmt.Sprintf("nodes[%d].patches[%d]", i, j), &node.Patches[j])
		}
	}
}

// NamedPatch is a patch, and what it is called in messages.
type NamedPatch struct {
	Patch
	Name string // "talos.patches.all[0]"
}

// PatchesOf are the patches of a node's machine configuration, in the order in which they are applied.
func (c *Cluster) PatchesOf(n Node) []NamedPatch {
	var list []NamedPatch
	add := func(path string, patches []Patch) {
		for i, patch := range patches {
			list = append(list, NamedPatch{patch, fmt.Sprintf("%s[%d]", path, i)})
		}
	}
	add("talos.patches.all", c.Talos.Patches.All)
	if n.Role == RoleControlPlane {
		add("talos.patches.controlplane", c.Talos.Patches.ControlPlane)
	} else {
		add("talos.patches.worker", c.Talos.Patches.Worker)
	}
	add("patches of "+n.Name, n.Patches)
	return list
}

// patches reads those that are files, and checks all.
func (k *checker) patches() {
	k.c.placed(func(path string, patch *Patch) {
		if !k.Has(path) {
			return
		}
		if patch.file != "" {
			if !k.inside(path, patch.file, "patches/registry.yaml") {
				return
			}
			data, err := os.ReadFile(filepath.Join(k.beside, patch.file))
			if err != nil {
				k.Mistake(path, "there is no patch %s beside cluster.yaml; write the patch itself here, or the name of a file with it", patch.file)
				return
			}
			patch.text = string(data)
		}
		k.patch(path, *patch)
	})
}
