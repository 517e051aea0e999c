package manifest

import "go.yaml.in/yaml/v3"

// resolve follows an alias to the node it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// pair is one entry of a mapping as a reader of the YAML sees it, merge keys applied.
type pair struct {
	key   string
	value *yaml.Node // may be an alias
}

// pairs returns the entries of a mapping; those of merged mappings ("<<") follow the mapping's own and never hide them.
// Entries whose key is no scalar are left out.
func pairs(mapping *yaml.Node) []pair {
	c := pairCollector{keys: map[string]bool{}, merged: map[*yaml.Node]bool{}}
	c.add(mapping)
	return c.pairs
}

type pairCollector struct {
	pairs  []pair
	keys   map[string]bool
	merged map[*yaml.Node]bool // each mapping once: merges may nest, repeat and, in a malformed file, be circular
}

func (c *pairCollector) add(mapping *yaml.Node) {
	if mapping.Kind != yaml.MappingNode || c.merged[mapping] {
		return
	}
	c.merged[mapping] = true
	var merges []*yaml.Node
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := resolve(mapping.Content[i]), mapping.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
		case key.ShortTag() == "!!merge":
			merges = append(merges, value)
		case !c.keys[key.Value]:
			c.keys[key.Value] = true
			c.pairs = append(c.pairs, pair{key.Value, value})
		}
	}
	for _, m := range merges {
		m = resolve(m)
		c.add(m)
		if m.Kind == yaml.SequenceNode {
			for _, item := range m.Content {
				c.add(resolve(item))
			}
		}
	}
}

// own returns a mapping's own key and its value as they are written, merged ones and aliases not followed; nothing where
// there is no such key.
func own(mapping *yaml.Node, key string) []*yaml.Node {
	if i := keyIndex(mapping, key); i >= 0 {
		return mapping.Content[i : i+2]
	}
	return nil
}

// keyIndex is the index in Content of a mapping's own key, merged ones not counted; -1 where there is none.
func keyIndex(mapping *yaml.Node, key string) int {
	for i := 0; i < len(mapping.Content); i += 2 {
		if resolve(mapping.Content[i]).Value == key {
			return i
		}
	}
	return -1
}

// lookup returns the resolved value at a path of keys, nil where there is none.
func lookup(n *yaml.Node, path ...string) *yaml.Node {
	n = resolve(n)
next:
	for _, key := range path {
		if n.Kind != yaml.MappingNode {
			return nil
		}
		for _, p := range pairs(n) {
			if p.key == key {
				n = resolve(p.value)
				continue next
			}
		}
		return nil
	}
	return n
}

// lookupString returns the string at a path of keys, "" where there is none.
func lookupString(n *yaml.Node, path ...string) string {
	return stringValue(lookup(n, path...))
}

// stringValue is the text of a scalar as written, numbers included; "" for null and for all that is no scalar.
func stringValue(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}

func isString(n *yaml.Node) bool {
	return n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
}
