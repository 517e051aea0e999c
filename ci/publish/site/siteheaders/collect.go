package siteheaders

import (
	"context"
	"path"
	"slices"
	"strings"

	"tazlab.net/castle/ci/publish/site/builtsite"
)

// document is what one file leaves behind.
type document struct {
	site  *builtsite.Site
	file  string
	needs map[need]bool
	// opens are the site's own files that the document opens as documents of their own, in frames or by links.
	opens map[string]bool
}

func (d *document) need(directive, source string) { d.because(directive, source, "") }

// because notes a need together with a noun phrase that says what it comes from.
func (d *document) because(directive, source, why string) {
	d.needs[need{directive, source, why}] = true
	if source != self {
		d.needs[need{directive: inFiles + directive}] = true
	}
}

// collect reads all files of a site that can need anything, or remembers what they need.
func collect(ctx context.Context, site *builtsite.Site, cacheDir string) (needs, error) {
	memory, err := openMemory(cacheDir, site.Base.String())
	if err != nil {
		return nil, err
	}
	files := slices.DeleteFunc(slices.Clone(site.Files), func(file string) bool { return readerOf(file) == nil })
	documents := make([]*document, len(files))
	err = site.Read(ctx, files, func(i int, content []byte) error {
		documents[i] = newDocument(site, files[i])
		memory.document(documents[i], content, readerOf(files[i]))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return merge(documents), memory.save()
}

func newDocument(site *builtsite.Site, file string) *document {
	return &document{site: site, file: file, needs: map[need]bool{}, opens: map[string]bool{}}
}

// readerOf is what reads a file of this name, nil where such a file needs nothing.
func readerOf(file string) func(*document, []byte) { return readers[strings.ToLower(path.Ext(file))] }

// readers are the kinds of files that need anything, by extension. What a feed needs, its readers say.
var readers = map[string]func(*document, []byte){
	".html": (*document).readPage,
	".htm":  (*document).readPage,
	".svg":  (*document).readXML,
	".xsl":  (*document).readXML,
	".xslt": (*document).readXML,
	".css":  (*document).readStyle,
	".js":   (*document).readScript,
	".mjs":  (*document).readScript,
}

// merge puts the needs of all documents together. A drawing that is only shown as a picture runs and loads nothing.
func merge(documents []*document) needs {
	opened := map[string]bool{}
	for _, d := range documents {
		for file := range d.opens {
			opened[file] = true
		}
	}
	all := needs{}
	for _, d := range documents {
		if strings.EqualFold(path.Ext(d.file), ".svg") && !opened[d.file] {
			continue
		}
		for wanted := range d.needs {
			all.add(d.file, wanted)
		}
	}
	return all
}
