//go:build linux

package talosnodes

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Image is one that nodes pull: a single program in it.
type Image struct {
	Name    string // "registry.k8s.io/etcd:v3.6.12"
	Program string // the file on this machine
	Path    string // where it is in the image, "usr/local/bin/etcd"
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
	image, err := i.build()
	if err != nil {
		return fmt.Errorf("make the image %s: %w", i.Name, err)
	}
	if err := remote.Write(reference, image, remote.WithTransport(registry)); err != nil {
		return fmt.Errorf("put %s into the registry: %w", i.Name, err)
	}
	return nil
}

func (i Image) build() (v1.Image, error) {
	program, err := os.ReadFile(i.Program)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	// Folders that a kubelet's container has mounts at, below what is a link there; and somebody for the user's number.
	entries := []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755}, {Typeflag: tar.TypeDir, Name: "run/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, {Typeflag: tar.TypeDir, Name: "var/", Mode: 0o755},
		{Typeflag: tar.TypeSymlink, Name: "var/run", Linkname: "../run"},
	}
	for folder := path.Dir(i.Path); folder != "."; folder = path.Dir(folder) {
		entries = append(entries, &tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755})
	}
	for _, entry := range entries {
		if err := archive.WriteHeader(entry); err != nil {
			return nil, err
		}
	}
	for file, content := range map[string][]byte{"etc/passwd": []byte("root:x:0:0:root:/root:/sbin/nologin\n"), i.Path: program} {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: file, Mode: 0o755, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil },
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
	config.Config = v1.Config{Entrypoint: []string{"/" + strings.TrimPrefix(i.Path, "/")}}
	return mutate.ConfigFile(image, config)
}
