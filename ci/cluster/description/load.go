package description

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
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
	var document, next yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, syntax(file, err)
	}
	if len(document.Content) == 0 {
		return nil, Mistakes{{File: file, Text: "is empty; start from the description of another cluster"}}
	}
	switch err := decoder.Decode(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, syntax(file, err)
	default:
		return nil, Mistakes{{File: file, Line: next.Line, Text: "a second document starts here; a file describes one cluster"}}
	}
	var c Cluster
	r := newReader(file)
	r.read(&c, document.Content[0])
	c.complete()
	k := checker{reader: r, c: &c, folder: folder}
	k.check()
	if len(r.mistakes) > 0 {
		return nil, r.all(&c)
	}
	return &c, nil
}

var syntaxError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax makes a mistake of what the YAML parser says: "yaml: line 3: mapping values are not allowed in this context".
func syntax(file string, err error) Mistakes {
	m := Mistake{File: file, Text: "is not YAML: " + err.Error()}
	if match := syntaxError.FindStringSubmatch(err.Error()); match != nil {
		m.Text = "is not YAML: " + match[2] + "; look here and on the line before"
		if line, err := strconv.Atoi(match[1]); err == nil {
			m.Line = line
		}
	}
	return Mistakes{m}
}
