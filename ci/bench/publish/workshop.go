package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/publish/report"
)

const manifestPath = "apps/base/hugo-blog/hugo-blog.yaml"

// workshop is a blog's working tree, a registry and a Git remote, for one run.
type workshop struct {
	options
	dir, path         string
	registryAddress   string
	gitAddress        string
	servers           []*http.Server
	hugoCache, public string
	castle            string // an image with castle's programs; empty: they are compiled
	module            string // a released castle, for a blog with a castle.yaml of its own; empty: this repository's
	traced            *spans // of the next call; nil: it is not traced
	engine            string // how the engine is reached; empty: as the environment says
}

func newWorkshop(ctx context.Context, o options, s site) (*workshop, error) {
	dir, err := os.MkdirTemp("", "castle-bench-*")
	if err != nil {
		return nil, err
	}
	w := &workshop{options: o, dir: dir, path: s.path, hugoCache: filepath.Join(dir, "hugo-cache"), public: filepath.Join(dir, "public")}
	images, err := registry.New(registry.Options{Root: filepath.Join(dir, "registry")})
	if err != nil {
		return nil, err
	}
	if w.registryAddress, err = w.serve(images); err != nil {
		return nil, err
	}
	remote := filepath.Join(dir, "git", "gitops.git")
	if err := gitserver.InitBare(ctx, remote, "main"); err != nil {
		return nil, err
	}
	manifest := fmt.Sprintf("kind: Deployment\nmetadata: {name: hugo-blog}\nspec:\n  template:\n    spec:\n      containers:\n        - name: hugo-blog\n          image: %s:blog-0000000\n", w.image())
	_, err = gitserver.Seed(ctx, remote, "main", gitserver.Commit{Files: fstest.MapFS{
		manifestPath:     {Data: []byte(manifest), Mode: 0o644},
		"plain-app.yaml": {Data: []byte(manifest), Mode: 0o644},
	}})
	if err != nil {
		return nil, err
	}
	repositories, err := gitserver.New(gitserver.Options{Root: filepath.Join(dir, "git"), Token: "bench"})
	if err != nil {
		return nil, err
	}
	if w.gitAddress, err = w.serve(repositories); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(w.blog(), 0o755); err != nil {
		return nil, err
	}
	if err := s.write(ctx, w.blog()); err != nil {
		return nil, err
	}
	if s.path == "." {
		return w, nil
	}
	_, err = git.Runner{Dir: w.source()}.Run(ctx, "init", "--quiet", "--initial-branch=main")
	return w, err
}

func (w *workshop) source() string { return filepath.Join(w.dir, "source") }
func (w *workshop) blog() string   { return filepath.Join(w.source(), w.path) }
func (w *workshop) image() string  { return w.registryAddress + "/me/blog" }
func (w *workshop) gitOps() string { return "http://" + w.gitAddress + "/gitops.git" }

func (w *workshop) serve(handler http.Handler) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler}
	w.servers = append(w.servers, server)
	go func() { _ = server.Serve(listener) }()
	return fmt.Sprintf("localhost:%d", listener.Addr().(*net.TCPAddr).Port), nil
}

func (w *workshop) close() error {
	for _, server := range w.servers {
		_ = server.Close()
	}
	return os.RemoveAll(w.dir)
}

// commit commits everything that changed.
func (w *workshop) commit(ctx context.Context, subject string) error {
	runner := git.Runner{Dir: w.source(), Env: []string{
		"GIT_AUTHOR_NAME=Bench", "GIT_AUTHOR_EMAIL=bench@example.com", "GIT_COMMITTER_NAME=Bench", "GIT_COMMITTER_EMAIL=bench@example.com",
	}}
	if _, err := runner.Run(ctx, "add", "--all"); err != nil {
		return err
	}
	_, err := runner.Run(ctx, "commit", "--quiet", "--allow-empty", "--message="+subject)
	return err
}

// publish is the call of castle that is measured, as a user makes it.
func (w *workshop) publish(ctx context.Context) (result report.Result, err error) {
	environment := []string{"BENCH_TOKEN=bench"}
	if w.engine != "" {
		environment = append(environment, "_EXPERIMENTAL_DAGGER_RUNNER_HOST="+w.engine)
	}
	if w.traced != nil {
		address, err := w.serve(w.traced)
		if err != nil {
			return result, err
		}
		environment = append(environment, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+address)
	}
	call := []string{"call", "--quiet"}
	if w.castle != "" {
		call = append(call, "--castle="+w.castle)
	}
	call = append(call, "publish-blog", "--source="+w.source(), "--format=JSON", "--git-token=env:BENCH_TOKEN",
		"--registry-service=tcp://"+w.registryAddress, "--gitops-service=tcp://"+w.gitAddress)
	if w.module != "" { // castle.yaml says the rest
		call = append([]string{"-m", w.module}, append(call, "--registry-password=env:BENCH_TOKEN")...)
	} else {
		call = append(call, "--path="+w.path, "--image="+w.image(), "--gitops-url="+w.gitOps(), "--manifest-path="+manifestPath)
	}
	output, err := w.output(ctx, w.root, environment, "dagger", call...)
	if err != nil {
		return result, err
	}
	return result, json.Unmarshal(output, &result)
}

// plain is the same by a script's means, on the same commit. It returns the bytes of the layer, all of which are sent.
func (w *workshop) plain(ctx context.Context) (int64, error) {
	if err := os.RemoveAll(w.public); err != nil {
		return 0, err
	}
	if err := w.run(ctx, "", []string{"HUGO_RESOURCEDIR=" + filepath.Join(w.hugoCache, "resources")}, w.hugo, "build", "--minify", "--quiet", "--noBuildLock", "--source="+w.blog(), "--destination="+w.public,
		"--cacheDir="+w.hugoCache); err != nil {
		return 0, err
	}
	if err := w.run(ctx, w.public, nil, "find", ".", "-type", "f", "(", "-name", "*.html", "-o", "-name", "*.xml", "-o", "-name", "*.css", "-o", "-name", "*.svg", ")",
		"-exec", "gzip", "--keep", "--no-name", "--best", "{}", "+"); err != nil {
		return 0, err
	}
	sha, err := git.Runner{Dir: w.source()}.Run(ctx, "rev-parse", "--short=7", "HEAD")
	if err != nil {
		return 0, err
	}
	tag := w.registryAddress + "/plain/blog:blog-" + strings.TrimSpace(sha)
	archive := filepath.Join(w.dir, "public.tar")
	if err := tarFolder(w.public, archive); err != nil {
		return 0, err
	}
	image, err := crane.Append(empty.Image, archive)
	if err != nil {
		return 0, err
	}
	if err := crane.Push(image, tag, crane.WithContext(ctx)); err != nil {
		return 0, err
	}
	layers, err := image.Layers()
	if err != nil {
		return 0, err
	}
	size, err := layers[0].Size()
	if err != nil {
		return 0, err
	}
	return size, w.plainBump(ctx, tag)
}

func (w *workshop) plainBump(ctx context.Context, tag string) error {
	clone := filepath.Join(w.dir, "clone")
	if err := os.RemoveAll(clone); err != nil {
		return err
	}
	script := `git clone --quiet --depth 1 "http://x:bench@$1/gitops.git" "$2"
cd "$2"
sed -i "s#image: .*#image: $3#" plain-app.yaml
git -c user.name=Bench -c user.email=bench@example.com commit --quiet --all --message "Publish $3" || exit 0
git push --quiet`
	return w.run(ctx, "", nil, "bash", "-euc", script, "bash", w.gitAddress, clone, tag)
}

// memory assembles the image of the site that plain left, on the host, and returns the process's largest resident set,
// in bytes.
func (w *workshop) memory(ctx context.Context) (int64, error) {
	base := filepath.Join(w.dir, "base.tar")
	config, err := empty.Image.ConfigFile()
	if err != nil {
		return 0, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	image, err := mutate.ConfigFile(empty.Image, config)
	if err != nil {
		return 0, err
	}
	if err := crane.Save(image, "base:1", base); err != nil {
		return 0, err
	}
	commit := filepath.Join(w.dir, "commit.json")
	if err := os.WriteFile(commit, []byte(`{"sha":"0123456789abcdef","time":"2026-01-02T03:04:05Z"}`), 0o644); err != nil {
		return 0, err
	}
	command := exec.CommandContext(ctx, w.program, "image", "--site="+w.public, "--base="+base, "--commit="+commit,
		"--cache="+filepath.Join(w.dir, "layers"), "--out="+filepath.Join(w.dir, "layout"))
	if output, err := command.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("castle-publish image: %w\n%s", err, output)
	}
	usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, errors.New("this system does not tell a process's memory")
	}
	return usage.Maxrss * 1024, nil // Linux counts in KiB
}

func (w *workshop) run(ctx context.Context, dir string, environment []string, name string, args ...string) error {
	_, err := w.output(ctx, dir, environment, name, args...)
	return err
}

// output runs a command and gives what it printed as its result; a failure tells all that it printed.
func (w *workshop) output(ctx context.Context, dir string, environment []string, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), environment...)
	var result, messages bytes.Buffer
	command.Stdout, command.Stderr = &result, &messages
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", name, err, messages.String(), result.String())
	}
	return result.Bytes(), nil
}

// tarFolder archives a folder as it is.
func tarFolder(folder, archive string) error {
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	writer := tar.NewWriter(file)
	if err := writer.AddFS(os.DirFS(folder)); err != nil {
		return err
	}
	return errors.Join(writer.Close(), file.Close())
}

// copyBlog copies the repository's blog without what Hugo made in it.
func copyBlog(root, dir string) error {
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "blog"))); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, "resources"))
}

// editAbout adds a comma to one page.
func editAbout(dir string, _ int) error {
	file, err := os.OpenFile(filepath.Join(dir, "content", "about.md"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, "\nOne sentence more, with a comma.\n")
	return errors.Join(err, file.Close())
}
