package siteimage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// site is a folder of pages. It is read through an os.Root, so a symbolic link that leaves it cannot be opened.
type site struct {
	root  *os.Root
	files []file // by path
}

// file is a file of a layer.
type file struct {
	path string // slash-separated, relative to the folder that the layer fills
	size int64
	sum  [sha256.Size]byte // SHA-256 of the content
	vary bool              // a compressed variant may stand beside it
	open func() (io.ReadCloser, error)
}

// scan lists and hashes the files of a site, on all CPUs.
func scan(ctx context.Context, dir string) (*site, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	s := &site{root: root}
	if err := s.read(ctx); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return s, nil
}

func (s *site) close() error { return s.root.Close() }

func (s *site) read(ctx context.Context) error {
	err := fs.WalkDir(s.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := s.root.Stat(name) // follows a symbolic link, inside the site only
		if err != nil {
			return fmt.Errorf("%s: a link that leads out of the site or nowhere, or unreadable: %w", name, err)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a folder (%s); remove it from the site", name, info.Mode().Type())
		}
		s.files = append(s.files, file{path: name, open: func() (io.ReadCloser, error) { return s.root.Open(name) }})
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the site: %w", err)
	}
	if !s.has("index.html") {
		return fmt.Errorf("%s has no index.html, so the image would answer / with 404: give the site a home page, "+
			"or name the folder that its generator wrote", s.root.Name())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range s.files {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return s.files[i].hash()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	own, err := s.ownVariants()
	if err != nil {
		return err
	}
	for i := range s.files {
		s.files[i].vary = !own[s.files[i].path]
	}
	return nil
}

// has looks a file up; WalkDir has sorted each folder, not the paths as wholes.
func (s *site) has(name string) bool {
	for i := range s.files {
		if s.files[i].path == name {
			return true
		}
	}
	return false
}

func (f *file) hash() error {
	r, err := f.open()
	if err != nil {
		return err
	}
	defer r.Close()
	h := sha256.New()
	if f.size, err = io.Copy(h, r); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	h.Sum(f.sum[:0])
	return nil
}

// memoryFile is a file that we made ourselves.
func memoryFile(name string, content []byte) file {
	return file{
		path: name, size: int64(len(content)), sum: sha256.Sum256(content),
		open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	}
}

// extension is the lower-case last extension of a path, ".html".
func (f *file) extension() string { return lowerASCII(path.Ext(f.path)) }

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
