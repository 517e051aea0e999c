package hugoversion

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// workflows are the versions that GitHub's workflows name: HUGO_VERSION of an env at any level, hugo-version of a step's with.
func (r reader) workflows() ([]mention, error) {
	files, err := fs.Glob(r.repository, workflows+"/*")
	if err != nil {
		return nil, err
	}
	var mentions []mention
	for _, name := range files {
		if extension := path.Ext(name); extension != ".yml" && extension != ".yaml" {
			continue
		}
		data, err := r.read(name)
		if err != nil {
			return nil, err
		}
		var document yaml.Node
		if yaml.Unmarshal(data, &document) != nil {
			continue // what GitHub cannot read says nothing
		}
		mentions = append(mentions, inWorkflow(name, &document)...)
	}
	return mentions, nil
}

// keys are those of a workflow that hold versions, and under which name.
var keys = map[string]string{"env": "HUGO_VERSION", "with": "hugo-version"}

func inWorkflow(name string, node *yaml.Node) []mention {
	var mentions []mention
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if text, line := scalarAt(node.Content[i+1], keys[node.Content[i].Value]); line != 0 {
				mentions = append(mentions, mention{text, fmt.Sprintf("%s:%d", name, line)})
			}
		}
	}
	for _, inner := range node.Content {
		mentions = append(mentions, inWorkflow(name, inner)...)
	}
	return mentions
}

// scalarAt is the text at a key of a mapping as it is written, so that 0.120 does not become 0.12, and its line, 0 where there
// is none.
func scalarAt(mapping *yaml.Node, key string) (text string, line int) {
	if mapping.Kind == yaml.AliasNode {
		mapping = mapping.Alias
	}
	if mapping.Kind != yaml.MappingNode || key == "" {
		return "", 0
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if value := mapping.Content[i+1]; mapping.Content[i].Value == key && value.Kind == yaml.ScalarNode {
			return strings.TrimSpace(value.Value), value.Line
		}
	}
	return "", 0
}
