//go:build linux

package world

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

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
		if exists(ctx, at, image) == nil {
			continue
		}
		reference, err := name.ParseReference(image, name.Insecure)
		if err != nil {
			return err
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

// exists asks for an image where that can be done: in the registry at that address. What it says in place of one is in containerd's words
// (core/remotes/docker/resolver.go of v2.1), as for a name below "invalid", which no name server knows (RFC 6761, 6.4). Images of any other
// registry are taken to be there. A node would ask by HTTPS unless a mirror says otherwise; here that makes no difference.
func exists(ctx context.Context, at netip.AddrPort, image string) error {
	host, _, _ := strings.Cut(image, "/")
	failed := func(format string, values ...any) error {
		return fmt.Errorf("failed to pull and unpack image %q: failed to resolve reference %[1]q: %s", image, fmt.Sprintf(format, values...))
	}
	if name, _, _ := strings.Cut(host, ":"); strings.HasSuffix(name, ".invalid") {
		return failed("failed to do request: Head %q: dial tcp: lookup %s: no such host", "https://"+host+"/v2/", name)
	}
	if host != at.String() {
		return nil
	}
	reference, err := name.ParseReference(image, name.Insecure)
	if err != nil {
		return fmt.Errorf("failed to pull and unpack image %q: %w", image, err)
	}
	_, err = remote.Head(reference, remote.WithContext(ctx))
	if answer, is := errors.AsType[*transport.Error](err); is && answer.StatusCode == http.StatusNotFound {
		return failed("%s: not found", image)
	}
	if err != nil {
		return failed("failed to do request: %v", err)
	}
	return nil
}
