package daggerengine

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
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
	base, err := e.Toolchain(ctx)
	if err != nil {
		return fmt.Errorf("base of the Go SDK's image: %w", err)
	}
	image, err := SDKImage(base, programs["codegen"])
	if err != nil {
		return fmt.Errorf("the Go SDK's image: %w", err)
	}
	digest, err := writeContent(image, files.content)
	if err != nil {
		return fmt.Errorf("the Go SDK's image: %w", err)
	}
	return os.WriteFile(files.sdkDigest, []byte(digest), 0o644)
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

// SDKImage is what the engine compiles Go modules in: a Go toolchain with the SDK's code generator and the folders that
// the engine mounts its caches over.
func SDKImage(base v1.Image, codegen string) (v1.Image, error) {
	program, err := os.ReadFile(codegen)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, folder := range []string{"go/", "go/pkg/", "go/pkg/mod/", "root/", "root/.cache/", "root/.cache/go-build/"} {
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755}); err != nil {
			return nil, err
		}
	}
	if err := writer.WriteHeader(&tar.Header{Name: "usr/local/bin/codegen", Mode: 0o755, Size: int64(len(program))}); err != nil {
		return nil, err
	}
	if _, err := writer.Write(program); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Config.Entrypoint, config.Config.Cmd = nil, nil
	for name, value := range map[string]string{"GOPATH": "/go", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"} {
		config.Config.Env = setVariable(config.Config.Env, name, value)
	}
	return mutate.ConfigFile(image, config)
}

func setVariable(env []string, name, value string) []string {
	for i, variable := range env {
		if strings.HasPrefix(variable, name+"=") {
			env[i] = name + "=" + value
			return env
		}
	}
	return append(env, name+"="+value)
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
