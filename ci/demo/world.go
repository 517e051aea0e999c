// Package demo shows publish-blog on this machine alone: it keeps a small world
// of a registry and a Git remote, publishes the repository's own blog into it
// through the real engine, and shows what came out. Everything it starts stays
// on loopback addresses and is removed by Down; it never touches a remote.
package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"
	"time"

	"tazlab.net/castle/ci/gitserver"
	"tazlab.net/castle/ci/registry"
)

//go:embed all:tazlab-k8s
var gitopsFiles embed.FS

const (
	// registryAddress and gitAddress are fixed, because the manifest names
	// the registry and is published to again and again.
	registryAddress = "127.0.0.1:5080"
	gitAddress      = "127.0.0.1:5081"

	image    = "localhost:5080/tazzo/tazlab.net"
	gitURL   = "http://localhost:5081/tazlab-k8s.git"
	manifest = "apps/base/hugo-blog/hugo-blog.yaml"
	branch   = "main"
	username = "demo"
)

// passwordVariable hands the world its password, which guards the registry and
// the Git remote: it is made anew at each start and stands in no file.
const passwordVariable = "CASTLE_DEMO_PASSWORD"

// World is the folder of a registry and a Git remote.
type World struct{ Dir string }

func (w World) gitDir() string { return filepath.Join(w.Dir, "git") }

func (w World) gitopsDir() string { return filepath.Join(w.gitDir(), "tazlab-k8s.git") }

// Serve serves the world until ctx ends.
func (w World) Serve(ctx context.Context) error {
	password := os.Getenv(passwordVariable)
	if password == "" {
		return fmt.Errorf("%s is not set: start the demo by `make demo`", passwordVariable)
	}
	if err := w.seed(ctx); err != nil {
		return err
	}
	images, err := registry.New(registry.Options{Root: filepath.Join(w.Dir, "registry"), Username: username, Password: password})
	if err != nil {
		return err
	}
	repositories, err := gitserver.New(gitserver.Options{Root: w.gitDir(), Token: password})
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	for address, handler := range map[string]http.Handler{registryAddress: images, gitAddress: repositories} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("the demo needs this address: %w", err)
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		defer server.Close()
		go func() { ended <- server.Serve(listener) }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// seed makes the GitOps repository, unless it is there from an earlier run.
func (w World) seed(ctx context.Context) error {
	if _, err := os.Stat(w.gitopsDir()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := gitserver.InitBare(ctx, w.gitopsDir(), branch); err != nil {
		return err
	}
	files := fstest.MapFS{}
	err := fs.WalkDir(gitopsFiles, "tazlab-k8s", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := gitopsFiles.ReadFile(name)
		files[strings.TrimPrefix(name, "tazlab-k8s/")] = &fstest.MapFile{
			Data: []byte(strings.ReplaceAll(string(data), "IMAGE", image)), Mode: 0o644,
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = gitserver.Seed(ctx, w.gitopsDir(), branch, gitserver.Commit{Message: "Add the blog", Files: files})
	return err
}
