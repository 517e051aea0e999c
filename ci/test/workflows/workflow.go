// Package workflows holds GitHub's workflows and actions to rules about their security and about what they call, much as zizmor
// does, in addition to actionlint, which scripts/lint.sh runs. rules.go is the table.
package workflows

import (
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is a workflow or an action.
type File struct {
	Name string
	// Engine is the version that a dagger CLI has to have.
	Engine string
	source []byte
	root   *yaml.Node
	lines  []string
}

// Read reads one.
func Read(name, engine string) (*File, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s is no workflow and no action", name)
	}
	return &File{Name: name, Engine: engine, source: source, root: document.Content[0], lines: strings.Split(string(source), "\n")}, nil
}

// isAction tells an action from a workflow.
func (f *File) isAction() bool { return get(f.root, "runs") != nil }

// on is what triggers a workflow, by name.
func (f *File) on(event string) bool {
	triggers := get(f.root, "on")
	if triggers == nil {
		return false
	}
	for i, node := range triggers.Content {
		if node.Value == event && (triggers.Kind == yaml.SequenceNode || i%2 == 0) {
			return true
		}
	}
	return triggers.Value == event
}

// part is a node with its key.
type part struct{ key, node *yaml.Node }

// jobs are a workflow's, by name.
func (f *File) jobs() []part { return pairs(get(f.root, "jobs")) }

// steps are those of a job or of an action's runs.
func steps(of *yaml.Node) []*yaml.Node {
	if list := get(of, "steps"); list != nil {
		return list.Content
	}
	return nil
}

// allSteps are those of all jobs, or of the action.
func (f *File) allSteps() []*yaml.Node {
	if f.isAction() {
		return steps(get(f.root, "runs"))
	}
	var all []*yaml.Node
	for _, job := range f.jobs() {
		all = append(all, steps(job.node)...)
	}
	return all
}

// get is the value of a key, or nil.
func get(mapping *yaml.Node, key string) *yaml.Node {
	for _, pair := range pairs(mapping) {
		if pair.key.Value == key {
			return pair.node
		}
	}
	return nil
}

// text is the value of a key that is a text, or "".
func text(mapping *yaml.Node, keys ...string) string {
	for _, key := range keys {
		mapping = get(mapping, key)
	}
	if mapping == nil {
		return ""
	}
	return mapping.Value
}

func pairs(mapping *yaml.Node) []part {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	var all []part
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		all = append(all, part{mapping.Content[i], mapping.Content[i+1]})
	}
	return all
}
