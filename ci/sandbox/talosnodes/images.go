//go:build linux

package talosnodes

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Image is one that nodes pull: programs of this machine, with the libraries that they are linked with.
type Image struct {
	Name  string            // "registry.k8s.io/etcd:v3.6.12"
	Start string            // the one that a container starts: where it is in the image, "usr/local/bin/etcd"
	Files map[string]string // where each is on this machine, by where it is in the image
	User  string            // who a container is of whom nothing else is said; "" is root
}

// image is one of a single program, and of what it calls.
func image(name, start, program string, called ...files) Image {
	all := files{start: program}
	for _, more := range called {
		maps.Copy(all, more)
	}
	return Image{Name: name, Start: start, Files: all}
}

// host is the registry's.
func (i Image) host() (string, error) {
	reference, err := name.ParseReference(i.Name)
	if err != nil {
		return "", err
	}
	return reference.Context().RegistryStr(), nil
}

// push makes the image and puts it into a registry, which the transport leads to.
func (i Image) push(registry http.RoundTripper) error {
	reference, err := name.ParseReference(i.Name)
	if err != nil {
		return err
	}
	image, err := i.Build()
	if err != nil {
		return fmt.Errorf("make the image %s: %w", i.Name, err)
	}
	if err := remote.Write(reference, image, remote.WithTransport(registry)); err != nil {
		return fmt.Errorf("put %s into the registry: %w", i.Name, err)
	}
	return nil
}

// Build makes the image, of one layer.
func (i Image) Build() (v1.Image, error) {
	content, err := i.content()
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithCompressionLevel(gzip.BestSpeed))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{Entrypoint: []string{"/" + i.Start}, Env: []string{"PATH=/usr/local/bin:/usr/bin"}, User: i.User}
	return mutate.ConfigFile(image, config)
}

// content is the image's one layer.
func (i Image) content() ([]byte, error) {
	files, err := withLibraries(i.Files)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	folders := map[string]bool{}
	for file := range files {
		for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
			folders[folder+"/"] = true
		}
	}
	// Folders that a kubelet's container has mounts at, below what is a link there.
	for _, folder := range []string{"etc/", "run/", "usr/", "usr/bin/", "usr/lib/", "var/"} {
		folders[folder] = true
	}
	entries := []*tar.Header{{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		entries = append(entries, &tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755})
	}
	for name, target := range imageLinks {
		entries = append(entries, &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target})
	}
	for _, entry := range entries {
		if err := archive.WriteHeader(entry); err != nil {
			return nil, err
		}
	}
	put := func(name string, content []byte) error {
		return errors.Join(archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content))}), second(archive.Write(content)))
	}
	// Somebody for the user's number.
	if err := put("etc/passwd", []byte(texts["etc/passwd"])); err != nil {
		return nil, err
	}
	for name, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := put(name, content); err != nil {
			return nil, err
		}
	}
	return layer.Bytes(), archive.Close()
}

// imageLinks are an image's folders that stand in for others.
var imageLinks = map[string]string{"bin": "usr/bin", "sbin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib", "var/run": "../run"}

func second(_ int, err error) error { return err }
