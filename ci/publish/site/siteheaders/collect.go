package siteheaders

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"tazlab.net/castle/ci/publish/site/webref"
)

// site is where the files are, and where they are served.
type site struct {
	root *os.Root
	base *url.URL // ends with a slash; webref.UnknownSite where the site does not tell
}

// document is what one file leaves behind.
type document struct {
	site  *site
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

// collect reads all files of a site that can need anything.
func collect(ctx context.Context, dir string, base *url.URL) (needs, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s := &site{root: root, base: base}
	if base == nil {
		s.base = s.ownAddress()
	}
	if !strings.HasSuffix(s.base.Path, "/") {
		s.base = s.base.JoinPath("/")
	}
	var documents []*document
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && readers[strings.ToLower(path.Ext(name))] != nil {
			documents = append(documents, &document{site: s, file: name, needs: map[need]bool{}, opens: map[string]bool{}})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, d := range documents {
		group.Go(func() error { return errors.Join(ctx.Err(), d.read()) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return merge(documents), nil
}

// ownAddress is the host of the home page's canonical link.
func (s *site) ownAddress() *url.URL {
	home, err := s.root.ReadFile("index.html")
	if err != nil {
		return webref.UnknownSite
	}
	return webref.SiteOf(home)
}

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

func (d *document) read() error {
	content, err := d.site.root.ReadFile(d.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a dangling link: nothing is served there
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", d.file, err)
	}
	readers[strings.ToLower(path.Ext(d.file))](d, content)
	return nil
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
