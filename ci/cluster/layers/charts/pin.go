package charts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Pin downloads all that the charts are made of, as it is now, and gives the list of charts with its digests: below each repository
// and each url a line digest, and every other line as it was.
func Pin(ctx context.Context, terragrunt string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(terragrunt, ChartsFile))
	if err != nil {
		return nil, err
	}
	charts, err := Charts(terragrunt)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", ChartsFile, err)
	}
	edit := edit{after: map[int]string{}, without: map[int]bool{}}
	for _, chart := range charts {
		node := value(value(document.Content[0], "charts"), chart.Name)
		if chart.Repository != "" {
			address, err := chart.archive(ctx)
			if err != nil {
				return nil, fmt.Errorf("chart %s: %w", chart.Name, err)
			}
			if err := edit.pin(ctx, node, "repository", address); err != nil {
				return nil, fmt.Errorf("chart %s: %w", chart.Name, err)
			}
		}
		for i, crds := range chart.CRDs {
			if err := edit.pin(ctx, value(node, "crds").Content[i], "url", crds.URL); err != nil {
				return nil, fmt.Errorf("chart %s: %w", chart.Name, err)
			}
		}
	}
	return []byte(edit.of(string(text))), nil
}

// edit is what changes of a text's lines, which are counted from 1.
type edit struct {
	after   map[int]string // a line to be inserted behind one
	without map[int]bool
}

// pin notes the digest of what is at an address behind the line of a field of a mapping, and that an older one goes.
func (e edit) pin(ctx context.Context, mapping *yaml.Node, field, address string) error {
	_, download, err := proven(ctx, address, "")
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		switch key := mapping.Content[i]; {
		case mapping.Style&yaml.FlowStyle != 0:
			return fmt.Errorf("%s:%d: it stands on one line; give each field a line of its own", ChartsFile, mapping.Line)
		case key.Value == field:
			e.after[key.Line] = strings.Repeat(" ", key.Column-1) + "digest: " + download.Digest
		case key.Value == "digest":
			e.without[key.Line] = true
		}
	}
	return nil
}

// of makes the changes.
func (e edit) of(text string) string {
	var out strings.Builder
	line := 0
	for each := range strings.Lines(text) {
		if line++; !e.without[line] {
			out.WriteString(each)
		}
		if insert, has := e.after[line]; has {
			out.WriteString(insert + "\n")
		}
	}
	return out.String()
}

// value is what a mapping has under a key that is there.
func value(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return &yaml.Node{}
}
