package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"tazlab.net/castle/ci/base/strictyaml"
)

// Load reads, completes and validates the description in a cluster's folder, which is named after the cluster. A
// description with mistakes gives them all at once, as Mistakes.
func Load(folder string) (*Cluster, error) {
	file := filepath.Join(folder, File)
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's description: %w", err)
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("find the cluster's folder: %w", err)
	}
	return parse(file, filepath.Base(absolute), data)
}

// parse reads a description; file is for messages, and folder is the name of the folder that it stands in, "" where that is not
// to be compared.
func parse(file, folder string, data []byte) (*Cluster, error) {
	var c Cluster
	r, err := strictyaml.Decode(file, data, &c, grammarFor(platformIn(data)), "describes one cluster", "start from the description of another cluster")
	if err != nil {
		return nil, err
	}
	c.complete()
	k := checker{Reader: r, c: &c, folder: folder, beside: filepath.Dir(file)}
	k.check()
	if mistakes := r.Mistakes(func(path string) string { return place(&c, path) }); mistakes != nil {
		return nil, mistakes
	}
	return &c, nil
}

// place names a field in front of a mistake: "nodes[2] blue-cp-3:", "nodes[2] blue-cp-3: address", "network.gateway:".
func place(c *Cluster, path string) string {
	if label, field := nodePlace(c, path); label != "" {
		return label + ":" + prefixed(" ", field)
	}
	if path == "" {
		return ""
	}
	return strictyaml.EntryName(path) + ":"
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

var inNode = regexp.MustCompile(`^nodes\[(\d+)\]\.?(.*)$`)

func nodePlace(c *Cluster, path string) (label, field string) {
	match := inNode.FindStringSubmatch(path)
	if match == nil {
		return "", ""
	}
	var i int
	if _, err := fmt.Sscan(match[1], &i); err != nil || i >= len(c.Nodes) {
		return "", ""
	}
	return nodeLabel(i, c.Nodes[i]), match[2]
}

func nodeLabel(i int, n Node) string {
	return fmt.Sprintf("nodes[%d]", i) + prefixed(" ", n.Name)
}
