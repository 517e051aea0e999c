package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/test/drill/stories"
)

//go:embed spoils.yaml
var list []byte

// spoil is a text of castle's whose change takes out what a story is held by.
type spoil struct {
	Story   string `yaml:"story"`
	Without string `yaml:"without"` // what is taken out, in words
	File    string `yaml:"file"`
	Text    string `yaml:"text"` // stands there once
	Becomes string `yaml:"becomes"`
	Test    test   `yaml:"test"` // of the story
}

// test is one of a story's, in spoils.yaml "cluster/gates TestAGate".
type test stories.Test

func (t *test) UnmarshalYAML(node *yaml.Node) error {
	folder, name, found := strings.Cut(node.Value, " ")
	if !found {
		return fmt.Errorf("line %d: %q is no folder below ci and name of a test", node.Line, node.Value)
	}
	*t = test{Package: folder, Name: name}
	return nil
}

func (t test) String() string { return fmt.Sprintf("`%s` %s", t.Package, t.Name) }

// quick tells that the test needs neither a world nor an engine.
func (t test) quick() bool { return t.Package != stories.Scenarios && t.Package != stories.EndToEnd }

type spoils []spoil

func load() (all spoils, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(list))
	decoder.KnownFields(true)
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("spoils.yaml: %w", err)
	}
	return all, nil
}

// chosen are those of the named stories, or all.
func (all spoils) chosen(names string, quick bool) (some spoils, err error) {
	wanted := strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(s spoil) bool { return s.Story == name }) {
			return nil, fmt.Errorf("spoils.yaml has nothing for a story %q", name)
		}
	}
	for _, s := range all {
		if (len(wanted) == 0 || slices.Contains(wanted, s.Story)) && (s.Test.quick() || !quick) {
			some = append(some, s)
		}
	}
	return some, nil
}

// apply changes the file below a folder.
func (s spoil) apply(root string) error {
	file := filepath.Join(root, filepath.FromSlash(s.File))
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := s.spoiled(string(old))
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), info.Mode())
}

func (s spoil) spoiled(text string) (string, error) {
	if n := strings.Count(text, s.Text); n != 1 || s.Text == "" {
		return "", fmt.Errorf("%s: %s has %d times what is to be taken out (%s); it has to be there once:\n%s", s.Story, s.File, n, s.Without, s.Text)
	}
	return strings.Replace(text, s.Text, s.Becomes, 1), nil
}
