package daggerengine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"tazlab.net/castle/ci/setup/daggerengine/gosdk"
)

// debianCNIPlugins is where Debian's package puts them; the engine wants them beside its own plugin, dnsname.
const debianCNIPlugins = "/usr/lib/cni"

// files are the parts of an engine's folder that one version brings.
type files struct {
	cni, content, sdkDigest string
	bin                     string // goes before the machine's own programs
}

func (e Engine) files() files {
	return files{cni: e.folder("plugins"), content: e.folder("content"), sdkDigest: e.folder("sdk.digest"), bin: e.folder("bin")}
}

// prepare lays out what the engine finds at its start: the CNI plugins and the Go SDK's image.
func (e Engine) prepare(ctx context.Context, programs map[string]string) error {
	files := e.files()
	if err := os.RemoveAll(files.cni); err != nil {
		return err
	}
	for _, folder := range []string{files.cni, files.bin, e.folder("run", "dagger"), e.folder("run", "buildkit"), e.folder("cni"), e.folder("no-certificates"), e.folder("state")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for _, plugin := range cniPlugins {
		if err := os.Symlink(filepath.Join(debianCNIPlugins, plugin), filepath.Join(files.cni, plugin)); err != nil {
			return err
		}
	}
	if err := os.Symlink(programs["dnsname"], filepath.Join(files.cni, "dnsname")); err != nil {
		return err
	}

	if err := writeDNSMasq(files.bin); err != nil {
		return err
	}
	image, err := e.sdk(ctx, programs)
	if err != nil {
		return err
	}
	digest, err := writeContent(image, files.content)
	if err != nil {
		return fmt.Errorf("the Go SDK's image: %w", err)
	}
	return os.WriteFile(files.sdkDigest, []byte(digest), 0o644)
}

// sdk is the Go SDK's image.
func (e Engine) sdk(ctx context.Context, programs map[string]string) (v1.Image, error) {
	base, err := e.Toolchain(ctx)
	if err != nil {
		return nil, fmt.Errorf("base of the Go SDK's image: %w", err)
	}
	kept := gosdk.Caches{Folder: e.folder("go-sdk"), Module: filepath.Join(filepath.Dir(programs["codegen"]), "go-sdk"), Log: e.Log}
	caches, err := kept.Layer(ctx, base)
	if err != nil {
		return nil, err
	}
	image, err := gosdk.Image(base, programs["codegen"], caches)
	if err != nil {
		return nil, fmt.Errorf("the Go SDK's image: %w", err)
	}
	return image, nil
}

// writeDNSMasq has dnsmasq serve names on the engine's own bridge only. As the dnsname plugin starts it, it listens on all
// addresses of the machine and answers on one: a second engine, or a name server that is there, could not be beside it.
func writeDNSMasq(folder string) error {
	file := filepath.Join(folder, "dnsmasq")
	real, err := exec.LookPath("dnsmasq")
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(fmt.Sprintf("#!/bin/sh\nexec %s --bind-dynamic \"$@\"\n", real)), 0o755)
}

// writeContent writes an image's blobs into a content folder as the engine reads it (blobs/sha256/…) and returns the
// manifest's digest.
func writeContent(image v1.Image, folder string) (string, error) {
	digest, err := image.Digest()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(folder, "blobs", digest.Algorithm, digest.Hex)); err == nil {
		return digest.String(), nil
	}
	// The manifest is written last: one that is there is complete.
	content, err := layout.FromPath(folder)
	if err != nil {
		if content, err = layout.Write(folder, empty.Index); err != nil {
			return "", err
		}
	}
	return digest.String(), content.ReplaceImage(image, func(v1.Descriptor) bool { return true })
}
