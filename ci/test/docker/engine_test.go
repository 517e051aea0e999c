//go:build linux

package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"tazlab.net/castle/ci/setup/daggerengine"
	"tazlab.net/castle/ci/setup/debian"
	"tazlab.net/castle/ci/setup/gotool"
	"tazlab.net/castle/ci/setup/images"
	"tazlab.net/castle/ci/setup/mirror"
	"tazlab.net/castle/ci/test/needs"
)

// output shows the progress of what a test calls.
type output struct{ t *testing.T }

func (o output) Write(text []byte) (int, error) {
	o.t.Logf("          %s", text)
	return len(text), nil
}

const imagesFile = "../../../.dagger/images.yaml"

func imageList(t *testing.T) images.List {
	t.Helper()
	list, err := images.Load(imagesFile)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// newMirror serves stand-ins of all images on this machine's loopback address and returns the port.
func newMirror(t *testing.T, cache string, list images.List) int {
	t.Helper()
	start := time.Now()
	if err := debian.Install(t.Context(), "mmdebstrap", "debian-archive-keyring"); err != nil {
		needs.Missing(t, "%v", err)
	}
	folder := filepath.Join(cache, "mirror")
	_, err := mirror.Build(t.Context(), mirror.BuildOptions{
		Cache: folder, List: list, Log: output{t},
		Tools: gotool.Builder{Cache: filepath.Join(cache, "tools"), Install: debian.Install, Log: output{t}}.Build,
	})
	if err != nil {
		t.Fatal(err)
	}
	pinStandIns(t, folder, list)
	addresses, ended := make(chan net.Addr, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		ended <- mirror.Serve(ctx, mirror.ServeOptions{
			Cache: folder, Addr: "127.0.0.1:0", Ready: func(address net.Addr) { addresses <- address },
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case address := <-addresses:
		took(t, "make and serve the stand-ins", start)
		return address.(*net.TCPAddr).Port
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return 0
	}
}

// pinStandIns has this repository's module pull the stand-ins while the test lasts. Of the mirror of an engine that is not
// castle's own, nobody else knows.
func pinStandIns(t *testing.T, mirrorCache string, list images.List) {
	t.Helper()
	file := filepath.Join(filepath.Dir(imagesFile), images.LocalFile)
	before, err := os.ReadFile(file)
	t.Cleanup(func() {
		if err == nil {
			err = os.WriteFile(file, before, 0o644)
		} else {
			err = os.Remove(file)
		}
		if err != nil {
			t.Error(err)
		}
	})
	local, localErr := mirror.Local(t.Context(), mirrorCache, list)
	if localErr == nil {
		localErr = local.WriteBeside(imagesFile)
	}
	if localErr != nil {
		t.Fatal(localErr)
	}
}

// loadEngine makes the engine's image and loads it under the name that the dagger CLI asks Docker for.
func loadEngine(t *testing.T, own daggerengine.Engine, list images.List) {
	t.Helper()
	official, err := list.Get("engine")
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(official.Reference())
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	root, err := mirror.Root(t.Context(), filepath.Join(own.Cache, "dockertest", "roots"), daggerengine.Packages, own.Log)
	if err != nil {
		t.Fatal(err)
	}
	took(t, "make the Debian root of the engine's image", start)

	start = time.Now()
	image, err := own.Image(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	took(t, "make the engine's image", start)

	start = time.Now()
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(tarball.Write(tag, image, writer)) }()
	load := exec.CommandContext(t.Context(), "docker", "load", "--quiet")
	load.Stdin = reader
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("docker load: %v\n%s", err, out)
	}
	took(t, "load it", start)
}

// toolchain returns the golang stand-in that a mirror serves.
func toolchain(list images.List, port int) func(context.Context) (v1.Image, error) {
	return func(ctx context.Context) (v1.Image, error) {
		golang, err := list.Get("golang")
		if err != nil {
			return nil, err
		}
		reference, err := name.ParseReference(fmt.Sprintf("127.0.0.1:%d/%s:%s", port, golang.Repository(), golang.Tag), name.Insecure)
		if err != nil {
			return nil, err
		}
		return remote.Image(reference, remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	}
}

// configureEngine writes a user's configuration for engines that the dagger CLI starts: the mirror, and this machine's
// extra CA certificates.
func configureEngine(t *testing.T, list images.List, port int) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	certificates := filepath.Join(home, "dagger", "ca-certificates")
	if err := os.MkdirAll(certificates, 0o755); err != nil {
		t.Fatal(err)
	}

	type registry struct {
		Mirrors []string `json:"mirrors,omitempty"`
		HTTP    bool     `json:"http,omitempty"`
	}
	address := fmt.Sprintf("%s:%d", HostAddress, port)
	registries := map[string]registry{address: {HTTP: true}}
	for _, image := range list {
		registries[image.Registry()] = registry{Mirrors: []string{address}}
	}
	config, err := json.Marshal(map[string]any{"registries": registries})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "dagger", "engine.json"), config, 0o644); err != nil {
		t.Fatal(err)
	}

	extra, err := filepath.Glob("/usr/local/share/ca-certificates/*.crt")
	if err != nil {
		t.Fatal(err)
	}
	for _, certificate := range extra {
		text, err := os.ReadFile(certificate)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(certificates, filepath.Base(certificate)), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
