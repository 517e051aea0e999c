package gitops

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/publish/manifest"
)

const (
	canary       = "canary-4f1d-git-token/+&"
	manifestPath = "apps/base/hugo-blog/hugo-blog.yaml"
	deployment   = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: hugo-blog # was tazzo/tazlab.net:blog-0000000 once
spec:
  template:
    spec:
      containers:
        - name: hugo-blog
          image: "tazzo/tazlab.net:blog-0000000"  # the tag
          ports: [{containerPort: 80}]
`
)

var blog = manifest.Selector{Image: "tazzo/tazlab.net"}

// remote is a Git server on loopback with one GitOps repository.
type remote struct {
	repository Repository
	bare       string // folder of the repository
	log        *lockedBuffer
	requests   func(*http.Request) // called before a request is served, where set
}

// newRemote serves a repository with one manifest.
func newRemote(t testing.TB, files map[string]string) *remote {
	t.Helper()
	root := t.TempDir()
	r := &remote{bare: filepath.Join(root, "tazlab-k8s.git"), log: &lockedBuffer{}}
	if err := gitserver.InitBare(t.Context(), r.bare, "main"); err != nil {
		t.Fatal(err)
	}
	r.git(t, "config", "core.fsync", "none")
	if files == nil {
		files = map[string]string{manifestPath: deployment}
	}
	r.commit(t, "Start", files)
	handler, err := gitserver.New(gitserver.Options{Root: root, Token: canary, ReadToken: "read-only", Log: log.New(r.log, "", 0)})
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if r.requests != nil {
			r.requests(request)
		}
		handler.ServeHTTP(w, request)
	}))
	r.repository = Repository{
		URL:         address + "/tazlab-k8s.git",
		Credentials: git.Credentials{Token: canary + "\n"},
		TempDir:     t.TempDir(),
	}
	return r
}

// serve starts a handler on loopback and returns its URL.
func serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// commit puts files onto main past the server, as a person would have pushed them.
func (r *remote) commit(t testing.TB, message string, files map[string]string, remove ...string) string {
	t.Helper()
	return r.commitOn(t, "main", message, files, remove...)
}

func (r *remote) commitOn(t testing.TB, branch, message string, files map[string]string, remove ...string) string {
	t.Helper()
	tree := fstest.MapFS{}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	sha, err := gitserver.Seed(t.Context(), r.bare, branch, gitserver.Commit{
		Message: message, Author: "Some Person <person@example.org>", Files: tree, Remove: remove,
	})
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

// git runs git in the served repository.
func (r *remote) git(t testing.TB, args ...string) string {
	t.Helper()
	out, err := git.Runner{Dir: r.bare}.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// hook makes a script the repository's update hook, which is run with a ref, its old and its new commit.
func (r *remote) hook(t testing.TB, script string) {
	t.Helper()
	file := filepath.Join(r.bare, "hooks", "update")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// beforeFirstPush runs an action once, when the first push announces itself.
func (r *remote) beforeFirstPush(action func()) {
	var once sync.Once
	r.requests = func(request *http.Request) {
		if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/git-receive-pack") {
			once.Do(action)
		}
	}
}

// publish is the request to publish the image of a commit that begins with the given digits.
func publish(commit string) UpdateRequest {
	full := commit + strings.Repeat("0", 40-len(commit))
	return UpdateRequest{
		Path: manifestPath, Selector: blog,
		Tag: "blog-" + full[:7], Digest: digestOf(commit),
		SourceCommit: full, SourceRepository: "https://github.com/example/blog",
		Patience: 30 * time.Second,
	}
}

func digestOf(commit string) string {
	return "sha256:" + commit + strings.Repeat("f", 64-len(commit))
}

func mustUpdate(t testing.TB, repository Repository, request UpdateRequest) UpdateResult {
	t.Helper()
	result, err := Update(t.Context(), repository, request)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// lockedBuffer is written to by the server's requests at once.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func short(n int) string { return fmt.Sprintf("%07x", 0xa000000+n) }

func withTimeout(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
