package gosdk

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/renameio/v2"

	"tazlab.net/castle/ci/base/copytree"
)

// Caches makes the caches that the image begins with.
type Caches struct {
	// Folder keeps them, by the digest of the toolchain's image and by Module; it is created.
	Folder string
	// Module is the folder with the sources of the SDK, the module dagger.io/dagger.
	Module string
	// Log gets a line when they are made. Nil: none.
	Log io.Writer
}

// deadline bounds the download of the SDK's dependencies and the compilation, which takes a minute on two cores.
const deadline = 20 * time.Minute

// Layer returns the layer with the caches for a toolchain's image, made where there is none yet. The compiler runs in that image's own
// root, since what it has compiled counts only for the same compiler, and for modules at the same place; nothing of the machine is
// changed but Folder. It needs root, as the engine does, the go command, and tar.
func (c Caches) Layer(ctx context.Context, toolchain v1.Image) (v1.Layer, error) {
	digest, err := toolchain.Digest()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(c.Folder, digest.Hex[:16]+"-"+filepath.Base(filepath.Dir(c.Module))+".tar.gz")
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		err = c.make(ctx, toolchain, file)
		if err != nil {
			return nil, fmt.Errorf("the compiler's caches for the Go SDK: %w", err)
		}
	}
	return tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer))
}

func (c Caches) make(ctx context.Context, toolchain v1.Image, file string) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	start := time.Now()
	if err := os.MkdirAll(c.Folder, 0o755); err != nil {
		return err
	}
	// What is there is for another toolchain or SDK, or was left by a command that was killed. One command at a time has the engine's lock.
	left, err := filepath.Glob(filepath.Join(c.Folder, "*"))
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.RemoveAll(name); err != nil {
			return err
		}
	}
	root := filepath.Join(c.Folder, "root")
	defer os.RemoveAll(root)
	if err := unpack(ctx, toolchain, root); err != nil {
		return err
	}
	if err := c.fill(ctx, toolchain, root); err != nil {
		return err
	}
	if err := pack(ctx, root, file); err != nil {
		return err
	}
	if c.Log != nil {
		fmt.Fprintf(c.Log, "compiled the standard library and what the Go SDK needs in %s\n", time.Since(start).Round(time.Second))
	}
	return nil
}

// unpack writes the image's files, and the least of what a container has beside them.
func unpack(ctx context.Context, image v1.Image, root string) error {
	for _, folder := range []string{"dev", "tmp", modules, compiled} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			return err
		}
	}
	flat := mutate.Extract(image)
	defer flat.Close()
	tar := exec.CommandContext(ctx, "tar", "--extract", "--directory", root, "--exclude=dev")
	tar.Stdin = flat
	if err := run(tar); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "dev", "null"), nil, 0o666)
}

// sources are the SDK's within the root, which no cache keeps.
const sources = "tmp/sdk"

// fill downloads what the SDK depends on, with the machine's own way to modules, and compiles it in the root without any.
func (c Caches) fill(ctx context.Context, toolchain v1.Image, root string) error {
	if err := copytree.Over(c.Module, filepath.Join(root, sources)); err != nil {
		return err
	}
	download := exec.CommandContext(ctx, "go", "list", "-e", "-deps", ".")
	download.Dir = filepath.Join(root, sources)
	// The modules are to be removed again, so their folders must not be read-only.
	download.Env = append(os.Environ(), "GOFLAGS=-modcacherw -mod=readonly", "GOWORK=off", "GOTOOLCHAIN=local", "GOMODCACHE="+filepath.Join(root, modules))
	if err := run(download); err != nil {
		return err
	}

	config, err := toolchain.ConfigFile()
	if err != nil {
		return err
	}
	inside := func(args ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, "/usr/bin/env", append([]string{"go"}, args...)...)
		command.Dir, command.Env = "/"+sources, environment(config)
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		return command
	}
	if err := run(inside("build", "std")); err != nil {
		return err
	}
	return run(inside("list", "-e", "-deps", "-export", "-compiled", "."))
}

// environment is what the go command has in the root. Without /proc, it does not find out where it is itself.
func environment(config *v1.ConfigFile) []string {
	return append(withVariables(config.Config.Env), "HOME=/root", "GOROOT=/usr/local/go", "GOTELEMETRY=off", "GOPROXY=off", "GOFLAGS=-mod=readonly")
}

// pack writes the caches' layer, whole or not at all.
func pack(ctx context.Context, root, file string) error {
	partial, err := renameio.NewPendingFile(file, renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer partial.Cleanup()
	compressed, err := gzip.NewWriterLevel(partial, gzip.BestSpeed) // read once by each new engine
	if err != nil {
		return err
	}
	tar := exec.CommandContext(ctx, "tar", "--create", "--directory", root, "--numeric-owner", "--owner=0", "--group=0", modules, compiled)
	tar.Stdout = compressed
	if err := errors.Join(run(tar), compressed.Close()); err != nil {
		return err
	}
	return partial.CloseAtomicallyReplace()
}

// run runs a command and puts the end of what it said into its error.
func run(command *exec.Cmd) error {
	var said bytes.Buffer
	command.Stderr = &said
	if command.Stdout == nil {
		command.Stdout = io.Discard
	}
	if err := command.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return fmt.Errorf("%s: %w: %s", strings.Join(command.Args[:min(3, len(command.Args))], " "), err, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return nil
}
