package daggerengine

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tazlab.net/castle/ci/setup/gotool"
)

// Where the official image has its files; the engine's distconsts name the same ones, and the dagger CLI calls buildctl
// inside a container that it started.
const (
	imagePrograms   = "/usr/local/bin"
	imageEntrypoint = imagePrograms + "/dagger-entrypoint.sh"
	imageEngine     = imagePrograms + "/dagger-engine"
	imageBuildctl   = "/usr/bin/buildctl"
	imageContent    = "/usr/local/share/dagger/content"
	imageCNI        = "/opt/cni/bin"
	imageState      = "/var/lib/dagger"
	imageConfig     = "/etc/dagger/engine.toml"
)

// entrypoint becomes the engine. Where cgroups are of version 2, containers can be started inside the container only
// when its root group holds no process and passes its controllers on. The engine keeps a database open per client.
const entrypoint = `#!/bin/sh
set -e
group=/sys/fs/cgroup
if [ -f "$group/cgroup.controllers" ]; then
	mkdir -p "$group/init"
	while read -r process; do
		echo "$process" >"$group/init/cgroup.procs" || :
	done <"$group/cgroup.procs" 2>/dev/null
	for controller in $(cat "$group/cgroup.controllers"); do
		echo "+$controller" >"$group/cgroup.subtree_control" || :
	done
fi
ulimit -n 1048576 2>/dev/null || echo "the limit of open files stays at $(ulimit -n)" >&2
exec ` + imageEngine + ` --config ` + imageConfig + ` "$@"
`

// Image is an image of the engine for this machine's architecture, laid out as the official one is, for machines that
// have Docker and cannot pull: loaded into Docker under the official name, the dagger CLI starts it. The root is a
// Debian root file system with Packages. Nothing of the host gets in; extra CA certificates and mirrors come in as for
// the official image, from the folder of the dagger CLI's configuration.
//
// The layers are read from the cache folder, and from where Toolchain's image is, whenever the image is: both must live
// as long as it.
func (e Engine) Image(ctx context.Context, root v1.Layer) (v1.Image, error) {
	programs, err := e.tools().Build(ctx, "dagger")
	if err != nil {
		return nil, err
	}
	recipe, err := gotool.Load("dagger")
	if err != nil {
		return nil, err
	}
	sdk, err := e.sdk(ctx, programs)
	if err != nil {
		return nil, err
	}
	return assemble(root, sdk, programs, recipe.Version)
}

// assemble puts the engine of a version and the Go SDK's image on top of a root.
func assemble(root v1.Layer, sdk v1.Image, programs map[string]string, version string) (v1.Image, error) {
	digest, err := sdk.Digest()
	if err != nil {
		return nil, err
	}
	engine, err := streamedLayer(func(a archive) error { return a.engine(programs) })
	if err != nil {
		return nil, fmt.Errorf("the engine's layer: %w", err)
	}
	content, err := streamedLayer(func(a archive) error { return a.image(imageContent, sdk) })
	if err != nil {
		return nil, fmt.Errorf("the Go SDK's layer: %w", err)
	}

	image, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), &v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux", RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{imageEntrypoint},
			Env: []string{
				"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				"DAGGER_GO_SDK_MANIFEST_DIGEST=" + digest.String(),
			},
			Volumes: map[string]struct{}{imageState: {}},
			Labels:  map[string]string{"org.opencontainers.image.version": version},
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(image, root, engine, content)
}

// archive is a layer that is being written.
type archive struct{ *tar.Writer }

// streamedLayer is a layer that is written anew each time it is read, so that it takes neither memory nor disk. Most of
// what such layers hold is compressed already, so they are compressed quickly rather than well.
func streamedLayer(fill func(archive) error) (v1.Layer, error) {
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		reader, writer := io.Pipe()
		go func() {
			a := archive{tar.NewWriter(writer)}
			err := fill(a)
			if err == nil {
				err = a.Close()
			}
			writer.CloseWithError(err)
		}()
		return reader, nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestSpeed))
}

// cniPlugins are Debian's plugins that the engine's network uses, beside dnsname.
var cniPlugins = []string{"bridge", "firewall", "host-local", "loopback"}

// engine adds the programs and what they expect at fixed places.
func (a archive) engine(programs map[string]string) error {
	for _, program := range []struct{ at, name string }{
		{imageEngine, "engine"},
		{imagePrograms + "/dagger-init", "dagger-init"},
		{imageBuildctl, "dial-stdio"},
		{imageCNI + "/dnsname", "dnsname"},
	} {
		if err := a.program(program.at, programs[program.name]); err != nil {
			return err
		}
	}
	for _, plugin := range cniPlugins {
		if err := a.link(path.Join(imageCNI, plugin), path.Join(debianCNIPlugins, plugin)); err != nil {
			return err
		}
	}
	if err := a.link(imagePrograms+"/runc", "/usr/sbin/runc"); err != nil {
		return err
	}
	if err := a.data(imageEntrypoint, 0o755, []byte(entrypoint)); err != nil {
		return err
	}
	return a.data(imageConfig, 0o644, nil)
}

// image adds an image's blobs as the engine reads them, below a folder.
func (a archive) image(folder string, image v1.Image) error {
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	text, err := image.RawManifest()
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	at := func(digest v1.Hash) string { return path.Join(folder, "blobs", digest.Algorithm, digest.Hex) }
	if err := errors.Join(a.data(at(digest), 0o644, text), a.data(at(manifest.Config.Digest), 0o644, config)); err != nil {
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for i, layer := range layers {
		if err := a.blob(at(manifest.Layers[i].Digest), manifest.Layers[i].Size, layer.Compressed); err != nil {
			return err
		}
	}
	return nil
}

func (a archive) blob(at string, size int64, open func() (io.ReadCloser, error)) error {
	reader, err := open()
	if err != nil {
		return err
	}
	defer reader.Close()
	return a.file(at, 0o644, size, reader)
}

func (a archive) program(at, source string) error {
	file, err := os.Open(source)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return a.file(at, 0o755, info.Size(), file)
}

func (a archive) data(at string, mode int64, data []byte) error {
	return a.file(at, mode, int64(len(data)), bytes.NewReader(data))
}

func (a archive) file(at string, mode, size int64, content io.Reader) error {
	if err := a.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: inArchive(at), Mode: mode, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(a, content)
	return err
}

func (a archive) link(at, target string) error {
	return a.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: inArchive(at), Linkname: target, Mode: 0o777})
}

func inArchive(at string) string { return strings.TrimPrefix(at, "/") }
