package manifests

import (
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Document is one of the documents of a file that has fields.
type Document struct {
	File *File
	Line int
	// Object is its content, with the types of Kubernetes' unstructured objects. Nil: it cannot be an object of Kubernetes.
	Object                            map[string]any
	APIVersion, Kind, Namespace, Name string

	node *yaml.Node
}

func newDocument(file *File, node *yaml.Node) *Document {
	if len(node.Content) == 0 || node.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	root := node.Content[0]
	document := &Document{File: file, Line: root.Line, node: root}
	var head struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name, Namespace string }
	}
	_ = root.Decode(&head) // what is of another type is no name
	document.APIVersion, document.Kind, document.Namespace, document.Name = head.APIVersion, head.Kind, head.Metadata.Namespace, head.Metadata.Name
	var content any
	if err := root.Decode(&content); err != nil {
		return document
	}
	if data, err := json.Marshal(content); err == nil {
		_ = utiljson.Unmarshal(data, &document.Object)
	}
	return document
}

// Group is the API group, empty for Kubernetes' core.
func (d *Document) Group() string { return GroupOf(d.APIVersion) }

// GroupOf is the group in an apiVersion.
func GroupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// LineOf is the line of a field, or of the innermost of its parents that the document has.
func (d *Document) LineOf(path ...string) int {
	node, line := d.node, d.Line
	for _, step := range path {
		for node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		next := (*yaml.Node)(nil)
		switch node.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == step {
					line, next = node.Content[i].Line, node.Content[i+1]
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(step); err == nil && i < len(node.Content) {
				next = node.Content[i]
				line = next.Line
			}
		}
		if next == nil {
			return line
		}
		node = next
	}
	return line
}
