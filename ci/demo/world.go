// Package demo shows publish-blog on this machine alone: it keeps a small world of a registry and a Git remote,
// publishes the repository's own blog into it through the real engine, and shows what came out. Everything it starts
// stays on loopback addresses and is removed by Down; it never touches a remote.
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

	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/base/registry"
)

//go:embed all:tazlab-k8s
var gitopsFiles embed.FS

const (
	// The demo's addresses are fixed, because the manifest names the registry and is published to again and again.
	defaultRegistry = "localhost:5080"
	defaultGit      = "localhost:5081"

	manifestPath = "apps/base/hugo-blog/hugo-blog.yaml"
	branch       = "main"
	username     = "demo"
)

// passwordVariable hands the world its password, which guards the registry and the Git remote: it is made anew at each
// start and stands in no file.
const passwordVariable = "CASTLE_DEMO_PASSWORD"

// World is the folder of a registry and a Git remote, and where they are served.
type World struct {
	Dir string
	// Registry and Git are addresses on loopback, "localhost:port".
	Registry, Git string
}

func (w World) image() string { return w.Registry + "/tazzo/tazlab.net" }

func (w World) gitURL() string { return "http://" + w.Git + "/" + filepath.Base(w.gitopsDir()) }

// serving is a file that is there while this world, and not another process on its addresses, answers.
func (w World) serving() string { return filepath.Join(w.Dir, "serving") }

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
	for address, handler := range map[string]http.Handler{w.Registry: images, w.Git: repositories} {
		listener, err := listenOnLoopback(address)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		defer server.Close()
		go func() { ended <- server.Serve(listener) }()
	}
	if err := os.WriteFile(w.serving(), nil, 0o644); err != nil {
		return err
	}
	defer os.Remove(w.serving())
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// listenOnLoopback listens on 127.0.0.1, which "localhost" may not mean alone.
func listenOnLoopback(address string) (net.Listener, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, fmt.Errorf("the demo needs the address %s: stop what listens there (ss -ltnp), then start again: %w", address, err)
	}
	return listener, nil
}

// seed makes the GitOps repository, unless it is there from an earlier run. It appears under its name when it is
// complete, so that a start that was cut short leaves none that stays empty.
func (w World) seed(ctx context.Context) error {
	if _, err := os.Stat(w.gitopsDir()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unfinished := filepath.Join(w.Dir, "unfinished.git")
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := gitserver.InitBare(ctx, unfinished, branch); err != nil {
		return err
	}
	files := fstest.MapFS{}
	err := fs.WalkDir(gitopsFiles, "tazlab-k8s", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := gitopsFiles.ReadFile(name)
		files[strings.TrimPrefix(name, "tazlab-k8s/")] = &fstest.MapFile{
			Data: []byte(strings.ReplaceAll(string(data), "IMAGE", w.image())), Mode: 0o644,
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := gitserver.Seed(ctx, unfinished, branch, gitserver.Commit{Message: "Add the blog", Files: files}); err != nil {
		return err
	}
	if err := os.MkdirAll(w.gitDir(), 0o755); err != nil {
		return err
	}
	return os.Rename(unfinished, w.gitopsDir())
}
