//go:build linux

package world

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/base/registry"
)

// serveRegistry serves the world's registry, which has the images that the GitOps repository begins with.
func (w *world) serveRegistry(ctx context.Context) error {
	handler, err := registry.New(registry.Options{Root: filepath.Join(w.Dir, "registry")})
	if err != nil {
		return err
	}
	if err := w.serve(w.seed.Registry, nil, &http.Server{Handler: handler}); err != nil {
		return err
	}
	if w.seed.Git.Empty {
		return nil
	}
	files, err := w.repositoryFiles()
	if err != nil {
		return err
	}
	first, err := w.firstImage()
	if err != nil {
		return err
	}
	return pushFirst(ctx, w.seed.Registry, first, files)
}

// firstImage is what the GitOps repository's pods run at first. Simulated nodes run nothing, and need no content.
func (w *world) firstImage() (v1.Image, error) {
	if w.Nodes == nil {
		return empty.Image, nil
	}
	return w.Nodes.Page().Build()
}

// pushFirst pushes an image for each that a file names in a registry and that is not there.
func pushFirst(ctx context.Context, at netip.AddrPort, first v1.Image, files fs.FS) error {
	images, err := named(at, files)
	if err != nil {
		return err
	}
	for _, image := range images {
		reference, err := name.ParseReference(image, name.Insecure)
		if err != nil {
			return err
		}
		if _, err := remote.Head(reference, remote.WithContext(ctx)); err == nil {
			continue
		}
		if err := remote.Write(reference, first, remote.WithContext(ctx)); err != nil {
			return fmt.Errorf("push %s into the world's registry: %w", image, err)
		}
	}
	return nil
}

// named are the images in a registry that containers have in files.
func named(at netip.AddrPort, files fs.FS) (images []string, err error) {
	line := regexp.MustCompile(`(?m)^[ -]*image: ["']?(` + regexp.QuoteMeta(at.String()) + `/[^"'\s]+)`)
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		for _, found := range line.FindAllSubmatch(data, -1) {
			images = append(images, string(found[1]))
		}
		return err
	})
	return images, err
}
