// Package realsites writes working trees of sites as other people have them: their themes, which come as Go modules, with
// the example content of these and what their users add, such as a comments widget, web fonts, npm packages or pictures in
// Git LFS. It is the material of tests and benchmarks; nothing of the product imports it.
package realsites

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Site is one working tree that can be written.
type Site struct {
	Name string
	// About is what it stands for, in a phrase.
	About string
	// Path is the site's folder in the working tree; empty for its top.
	Path string
	// Fetches is what building it asks the network for; empty for nothing.
	Fetches string
	// Varies is what makes two builds of it differ and is not castle's to settle; empty where they are equal.
	Varies string
	// Sample is set for the few that every run of the tests publishes.
	Sample bool

	write func(*tree) error
}

var all = []Site{blowfish, congo, hextra, docsy, sass, tailwind, lfs, mage, learn, doks}

// All are the sites, in the order in which they are worth a look.
func All() []Site { return slices.Clone(all) }

// Samples are those that every run of the tests publishes.
func Samples() []Site {
	return slices.DeleteFunc(All(), func(s Site) bool { return !s.Sample })
}

// Write makes dir, which must be empty or missing, a clean working tree with the site and one commit, whose name is the
// same each time. The go command downloads the theme; a theme that is a submodule gets its own repository beside
// dir. It fails when the theme cannot be had.
func (s Site) Write(ctx context.Context, dir string) error {
	if present, err := os.ReadDir(dir); err == nil && len(present) > 0 {
		return fmt.Errorf("%s is not empty: name a new folder for the site %s", dir, s.Name)
	}
	t := &tree{ctx: ctx, dir: dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := t.git(dir, "init", "--quiet", "--initial-branch=main"); err != nil {
		return err
	}
	if err := s.write(t); err != nil {
		return fmt.Errorf("write the site %s: %w", s.Name, err)
	}
	if err := t.commit(dir, "Write the site"); err != nil {
		return fmt.Errorf("write the site %s: %w", s.Name, err)
	}
	return nil
}

// path is a place in the working tree.
func (t *tree) path(name string) string { return filepath.Join(t.dir, filepath.FromSlash(name)) }
