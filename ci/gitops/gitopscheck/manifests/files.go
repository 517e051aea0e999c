// Package manifests reads the YAML of a GitOps repository and remembers where everything stands in it, so that what is said of
// an object after kustomize has built it can still name a file and a line.
package manifests

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"go.yaml.in/yaml/v3"
)

// Files are the YAML files of a folder, by their names relative to it, with slashes.
type Files struct {
	Root   string
	ByName map[string]*File

	ignored func(name string, isFolder bool) bool
}

// File is one of them.
type File struct {
	Name      string
	Text      []byte
	Documents []*Document
	Err       error // it is no YAML from some line on
}

// notManifests are folders that hold files of others, or of programs.
var notManifests = []string{".git", "node_modules", ".terraform", ".terragrunt-cache", ".venv"}

// Read reads all YAML files below a folder. The templates of Helm charts are none, and what .sourceignore leaves out is not in
// the repository for Flux.
func Read(root string) (*Files, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	files := &Files{Root: root, ByName: map[string]*File{}}
	if files.ignored, err = sourceIgnore(root); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(notManifests, entry.Name()), entry.IsDir() && isChartTemplates(name),
			entry.IsDir() && name != root && files.ignored(name, true):
			return filepath.SkipDir
		case files.ignored(name, false), !entry.Type().IsRegular() || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		file := parse(filepath.ToSlash(below), text)
		files.ByName[file.Name] = file
		return nil
	})
	return files, err
}

// sourceIgnore is what Flux's source-controller leaves out of a repository: what the files .sourceignore name, and some more that no
// cluster needs.
func sourceIgnore(root string) (func(name string, isFolder bool) bool, error) {
	domain := strings.Split(root, string(filepath.Separator))
	patterns, err := sourceignore.LoadIgnorePatterns(root, domain)
	if err != nil {
		return nil, err
	}
	matcher := sourceignore.NewDefaultMatcher(patterns, domain)
	return func(name string, isFolder bool) bool {
		return matcher.Match(strings.Split(name, string(filepath.Separator)), isFolder)
	}, nil
}

func isChartTemplates(folder string) bool {
	if filepath.Base(folder) != "templates" {
		return false
	}
	_, err := os.Stat(filepath.Join(filepath.Dir(folder), "Chart.yaml"))
	return err == nil
}

func parse(name string, text []byte) *File {
	file := &File{Name: name, Text: text}
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var node yaml.Node
		err := decoder.Decode(&node)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				file.Err = err
			}
			return file
		}
		if document := newDocument(file, &node); document != nil {
			file.Documents = append(file.Documents, document)
		}
	}
}

// Sorted are all files in the order of their names.
func (f *Files) Sorted() []*File {
	list := make([]*File, 0, len(f.ByName))
	for _, file := range f.ByName {
		list = append(list, file)
	}
	slices.SortFunc(list, func(a, b *File) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Of are the documents of a kind in a group, whatever its version.
func (f *Files) Of(group, kind string) []*Document {
	var found []*Document
	for _, file := range f.Sorted() {
		for _, document := range file.Documents {
			if document.Kind == kind && document.Group() == group {
				found = append(found, document)
			}
		}
	}
	return found
}

// IsFolder says whether a folder of that name is in the repository; "." is the repository itself.
func (f *Files) IsFolder(name string) bool {
	full := filepath.Join(f.Root, filepath.FromSlash(name))
	info, err := os.Stat(full)
	return err == nil && info.IsDir() && (full == f.Root || !f.ignored(full, true))
}

// Find is the document that an object was made from: of the kind in the file, and of its name. kustomize may have put a prefix
// or a suffix to that, so that the longest name within the object's will do, and in the end the only document of the kind. Nil: there is none.
func (f *Files) Find(name, kind, object string) *Document {
	file := f.ByName[path.Clean(name)]
	if file == nil {
		return nil
	}
	var ofKind, within []*Document
	for _, document := range file.Documents {
		switch {
		case document.Kind != kind:
			continue
		case document.Name == object:
			return document
		case document.Name != "" && strings.Contains(object, document.Name):
			within = append(within, document)
		}
		ofKind = append(ofKind, document)
	}
	if len(within) > 0 {
		return slices.MaxFunc(within, func(a, b *Document) int { return len(a.Name) - len(b.Name) })
	}
	if len(ofKind) == 1 {
		return ofKind[0]
	}
	return nil
}
