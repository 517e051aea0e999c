package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/renameio/v2"

	"tazlab.net/castle/ci/setup/debian"
)

// root is the Debian layer at the bottom of stand-ins.
type root struct {
	layer    v1.Layer
	versions map[string]string // of all its packages
}

// rootName names the files of a root in the cache: by all that decides what is in it, but for the versions that
// Debian's archive has on the day.
func (b *builder) rootName(packages []string) string {
	return "root-" + digestOf(generation, debian.DefaultSuite, debian.Epoch, b.arch, packages)[:16]
}

// root gives the root with these packages: the one in the cache, or a new one. Without packages there is no layer.
func (b *builder) root(ctx context.Context, packages []string) (root, error) {
	if len(packages) == 0 {
		return root{}, nil
	}
	name := b.rootName(packages)
	file := filepath.Join(b.layers(), name+".tar.gz")
	if r, err := readRoot(file); err == nil && (!b.Rebuild || b.fresh[name]) {
		return r, nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.say("the Debian root in the cache cannot be used: %v", err)
	}
	b.say("making a Debian root with %s", strings.Join(packages, ", "))
	plain := filepath.Join(b.layers(), name+".tar")
	defer os.Remove(plain)
	versions, err := b.debian(ctx, plain, packages, debian.Options{})
	if err != nil {
		return root{}, err
	}
	// The versions first: a layer is there only when they are.
	data, err := json.Marshal(versions)
	if err != nil {
		return root{}, err
	}
	if err := renameio.WriteFile(versionsFile(file), data, 0o644); err != nil {
		return root{}, err
	}
	err = writeGzip(file, func(w io.Writer) error {
		in, err := os.Open(plain)
		if err != nil {
			return err
		}
		defer in.Close()
		_, err = io.Copy(w, in)
		return err
	})
	if err != nil {
		return root{}, err
	}
	b.fresh[name] = true
	return readRoot(file)
}

func versionsFile(layer string) string { return strings.TrimSuffix(layer, ".tar.gz") + ".json" }

func readRoot(file string) (root, error) {
	layer, err := openLayer(file)
	if err != nil {
		return root{}, err
	}
	data, err := os.ReadFile(versionsFile(file))
	if err != nil {
		return root{}, err
	}
	versions := map[string]string{}
	if err := json.Unmarshal(data, &versions); err != nil {
		return root{}, fmt.Errorf("%s: %w", versionsFile(file), err)
	}
	return root{layer: layer, versions: versions}, nil
}

// madeFrom names the packages that were asked for, with the versions that came; it ends before what else is in an image.
func (r root) madeFrom(packages []string) string {
	if len(packages) == 0 {
		return ""
	}
	parts := []string{"Debian " + debian.DefaultSuite}
	for _, name := range slices.Sorted(slices.Values(packages)) {
		parts = append(parts, name+" "+r.versions[name])
	}
	return strings.Join(parts, ", ") + "; "
}

// prune removes roots that no recipe of the list uses any more, and what an interrupted call left.
func (b *builder) prune() error {
	entries, err := os.ReadDir(b.layers())
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, image := range b.List {
		if r, err := recipeOf(image); err == nil {
			file := b.rootName(r.packages) + ".tar.gz"
			used[file], used[versionsFile(file)] = true, true
		}
	}
	for _, entry := range entries {
		if !used[entry.Name()] {
			if err := os.RemoveAll(filepath.Join(b.layers(), entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
