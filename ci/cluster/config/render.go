package config

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/base/rendering"
)

// Text is the completed description as YAML that could stand in cluster.yaml.
func (c *Cluster) Text() string {
	text, err := c.yaml()
	if err != nil {
		panic(err) // every description that was read can be written
	}
	return text
}

// Markdown is the same in a block. The JSON form is what programs read.
func (c *Cluster) Markdown() string { return rendering.Block("yaml", c.Text()) }

// yaml has the fields in the order of the types, as their JSON has them.
func (c *Cluster) yaml() (string, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return "", err
	}
	restyle(&document)
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return "", err
	}
	return text.String(), encoder.Close()
}

// restyle takes the braces and the quotes of JSON away; the encoder quotes again what needs it.
func restyle(node *yaml.Node) {
	node.Style = 0
	for _, child := range node.Content {
		restyle(child)
	}
}
