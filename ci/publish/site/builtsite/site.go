// Package builtsite is the folder that Hugo has built a site into: which files there are, where they are served, and a
// way to read many of them at once. What is in a file is up to those who read it.
package builtsite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Site is a built site. Names are relative to its folder, with slashes, in the order of strings.
type Site struct {
	Dir     string
	Files   []string
	Folders []string // the site's own, which is empty, is the first
	Base    *url.URL // where it is served; ends with a slash; UnknownSite where the site does not tell
}

// Open lists a folder as a web server sees it: links are followed, and what a dangling one names is not there. baseURL
// is where the site is served; empty: what the site says, AddressOf.
func Open(dir, baseURL string) (*Site, error) {
	s := &Site{Dir: dir}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("read site: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("read site: %s is not a folder", dir)
	}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case relative == ".":
			s.Folders = append(s.Folders, "")
		case entry.IsDir():
			s.Folders = append(s.Folders, relative)
		case info.Mode().IsRegular():
			s.Files = append(s.Files, relative)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read site: %w", err)
	}
	slices.Sort(s.Files)
	slices.Sort(s.Folders)
	s.Base, err = Address(dir, baseURL)
	return s, err
}

// Read reads files of the site, as many at once as there are processors, and hands each on with its place in the list.
// The first error ends it.
func (s *Site) Read(ctx context.Context, files []string, read func(i int, content []byte) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range files {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			content, err := os.ReadFile(filepath.Join(s.Dir, filepath.FromSlash(file)))
			if err != nil {
				return fmt.Errorf("read site: %w", err)
			}
			return read(i, content)
		})
	}
	return group.Wait()
}
