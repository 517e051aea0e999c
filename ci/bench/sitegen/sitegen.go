// Package sitegen writes a synthetic Hugo site of any size for benchmarks, the same bytes for the same seed; it never
// runs Hugo, and never writes outside the directory it is given.
package sitegen

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// DefaultPages is the number of pages of a site whose Options name none.
const DefaultPages = 10_000

// layout is the one template of a site without a theme.
//
//go:embed layout.html
var layout []byte

// Options says what to generate.
type Options struct {
	// Dir receives the site. It is created; if it exists it must be empty.
	Dir string
	// Pages is the number of articles, DefaultPages if 0. Lists and section pages come on top.
	Pages int
	// Seed chooses the texts. A page's text depends on Seed and its number alone, so that a larger site with the same
	// seed begins with the pages of the smaller one.
	Seed int64
	// ThemeDir is the folder of a Hugo theme, which is copied into the site. If empty, the site gets one small
	// layout of its own.
	ThemeDir string
}

// Generate writes the site that o describes: hugo.yaml, the theme or layout, and the content in 20 sections. Pages are
// numbered from 1; each has some 300 to 1,200 words, one to four tags and a date later than that of the page before.
//
// It fails on options that make no sense, on a directory that is not empty, on a theme that cannot be read, and with
// ctx's error when ctx ends. What was written until then stays.
func Generate(ctx context.Context, o Options) error {
	if o.Pages == 0 {
		o.Pages = DefaultPages
	}
	if err := o.validate(); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("create the site's directory: %w", err)
	}
	theme, err := o.writeLayouts()
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(o.Dir, "hugo.yaml"), config(theme)); err != nil {
		return err
	}
	for _, s := range sections {
		if err := writeFile(filepath.Join(o.Dir, "content", s, "_index.md"), sectionPage(s)); err != nil {
			return err
		}
	}
	for n := 1; n <= o.Pages; n++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("generate page %d of %d: %w", n, o.Pages, err)
		}
		if err := writeFile(pagePath(o.Dir, n), Page(o.Seed, n)); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) validate() error {
	if o.Dir == "" {
		return errors.New("no directory for the site: set Dir")
	}
	if o.Pages < 0 {
		return fmt.Errorf("%d pages: the number of pages must be positive", o.Pages)
	}
	entries, err := os.ReadDir(o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look into the site's directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("directory %s is not empty: name a new one, or empty it", o.Dir)
	}
	return nil
}

// writeLayouts copies the theme and returns its name, or writes the small layout and returns "".
func (o Options) writeLayouts() (theme string, err error) {
	if o.ThemeDir == "" {
		return "", writeFile(filepath.Join(o.Dir, "layouts", "all.html"), layout)
	}
	source, err := filepath.Abs(o.ThemeDir)
	if err != nil {
		return "", fmt.Errorf("find the theme: %w", err)
	}
	theme = filepath.Base(source)
	if err := os.CopyFS(filepath.Join(o.Dir, "themes", theme), os.DirFS(source)); err != nil {
		return "", fmt.Errorf("copy the theme %s: %w", o.ThemeDir, err)
	}
	return theme, nil
}

// pagePath returns the file of page n. The section follows from the number, so that a page can be found again without
// reading the site.
func pagePath(dir string, n int) string {
	return filepath.Join(dir, "content", section(n), pageName(n)+".md")
}

func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create the folder of %s: %w", path, err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
