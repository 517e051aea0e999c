// Package gitopsrepo renders the Flux repository of a cluster from its description, cluster.yaml, and a few options, into a
// folder or as the first commit of an empty remote. What the repository holds stands in gitops-template at castle's root; here
// stands which parts of it a cluster gets and what its files are filled with.
//
// It writes no secret: where a value is needed that only the user has, the repository names it, by an ExternalSecret or in its
// README. Nothing is looked up, so the same request gives the same bytes.
package gitopsrepo

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"text/template"

	gitopstemplate "tazlab.net/castle/gitops-template"
)

// Files are a repository's, each by its path, with slashes.
type Files map[string][]byte

const (
	repositoryFolder = "repository"
	partialsFolder   = "partials"
)

// render fills in every file of the template that the parts have.
func (m *model) render() (Files, error) {
	files := Files{}
	err := fs.WalkDir(gitopstemplate.Files, repositoryFolder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		below := strings.TrimPrefix(name, repositoryFolder+"/")
		if !m.parts.has(below, !m.SOPS) {
			return nil
		}
		text, err := m.fill(below)
		if err != nil {
			return fmt.Errorf("gitops-template: %w", err)
		}
		files[m.place(below)] = text
		return nil
	})
	return files, err
}

// place is where a file of the template stands in the repository.
func (m *model) place(name string) string {
	if below, is := strings.CutPrefix(name, "clusters/NAME/"); is {
		return path.Join(m.Path, below)
	}
	return strings.ReplaceAll(name, "/NAME/", "/"+m.Name+"/")
}

// fill is the text of one file.
func (m *model) fill(name string) ([]byte, error) {
	t, err := m.parse(name, repositoryFolder+"/"+name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, m); err != nil {
		return nil, err
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n'), nil
}

// parse reads a file of the template, beside the partials.
func (m *model) parse(name, file string) (*template.Template, error) {
	text, err := gitopstemplate.Files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	t := template.New(name).Delims("[[", "]]").Option("missingkey=error").Funcs(m.functions(path.Dir(name)))
	partials, err := fs.ReadDir(gitopstemplate.Files, partialsFolder)
	if err != nil {
		return nil, err
	}
	for _, partial := range partials {
		shared, err := gitopstemplate.Files.ReadFile(partialsFolder + "/" + partial.Name())
		if err != nil {
			return nil, err
		}
		if _, err := t.New(partial.Name()).Parse(strings.TrimRight(string(shared), "\n")); err != nil {
			return nil, err
		}
	}
	return t.Parse(string(text))
}

// quote writes a text as YAML and JSON both read it.
func quote(text string) string { return strconv.Quote(text) }
