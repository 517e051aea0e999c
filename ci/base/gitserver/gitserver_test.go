package gitserver

import (
	"bytes"
	"errors"
	"log"
	"math/rand/v2"
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
	"tazlab.net/castle/ci/base/gitserver/gitservertest"
	"tazlab.net/castle/ci/test/needs"
)

const canary = "canary-77ab-server-token"

// world is a server on loopback with one repository of one commit.
type world struct {
	bare string
	url  string
	log  *safeBuffer
}

type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func start(t *testing.T, options Options) *world {
	t.Helper()
	options.Root = t.TempDir()
	w := &world{bare: filepath.Join(options.Root, "team", "x.git"), log: &safeBuffer{}}
	if err := InitBare(t.Context(), w.bare, "main"); err != nil {
		t.Fatal(err)
	}
	if _, err := Seed(t.Context(), w.bare, "main", Commit{Files: fstest.MapFS{"a.txt": {Data: []byte("a\r\n")}}}); err != nil {
		t.Fatal(err)
	}
	options.Log = log.New(w.log, "", 0)
	handler, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	w.url = server.URL + "/team/x.git"
	return w
}

// clone makes a working tree and returns git in it.
func (w *world) clone(t *testing.T, token string) (git.Runner, error) {
	t.Helper()
	runner := git.Runner{Dir: t.TempDir(), Config: []git.Setting{{Key: "user.name", Value: "x"}, {Key: "user.email", Value: "x@localhost"}}}
	runner.Credentials = git.Credentials{URL: w.url, Token: token}
	_, err := runner.Run(t.Context(), "clone", "--quiet", w.url, ".")
	return runner, err
}

// push commits a file and pushes it.
func push(t *testing.T, runner git.Runner, content []byte) error {
	t.Helper()
	if err := os.WriteFile(filepath.Join(runner.Dir, "b.bin"), content, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"add", "b.bin"}, {"commit", "--quiet", "-m", "b"}} {
		if _, err := runner.Run(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	_, err := runner.Run(t.Context(), "push", "--quiet", "origin", "HEAD:main")
	return err
}

func TestTheTokenReadsAndPushes(t *testing.T) {
	w := start(t, Options{Token: canary})
	runner, err := w.clone(t, canary)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(runner.Dir, "a.txt")); err != nil || string(content) != "a\r\n" {
		t.Errorf("a.txt = %q, %v", content, err)
	}
	if err := push(t, runner, []byte("b\n")); err != nil {
		t.Fatal(err)
	}
	if got, err := (git.Runner{Dir: w.bare}).Run(t.Context(), "show", "main:b.bin"); err != nil || got != "b\n" {
		t.Errorf("b.bin = %q, %v", got, err)
	}
	if log := w.log.String(); !strings.Contains(log, "POST /team/x.git/git-receive-pack 200") || strings.Contains(log, canary) {
		t.Errorf("log:\n%s", log)
	}
}

func TestAPackThatComesInChunksIsTaken(t *testing.T) {
	w := start(t, Options{Token: canary})
	runner, err := w.clone(t, canary)
	if err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 3<<20) // above http.postBuffer, and nothing to compress
	source := rand.New(rand.NewPCG(1, 2))
	for i := range content {
		content[i] = byte(source.Uint32())
	}
	if err := push(t, runner, content); err != nil {
		t.Fatal(err)
	}
	if got, err := (git.Runner{Dir: w.bare}).Run(t.Context(), "show", "main:b.bin"); err != nil || got != string(content) {
		t.Errorf("%d bytes arrived, %v", len(got), err)
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	for name, story := range map[string]struct {
		options     Options
		token       string
		clone, push error
	}{
		"a wrong token may nothing":           {Options{}, "wrong", git.ErrUnauthorized, nil},
		"nobody may nothing":                  {Options{}, "", git.ErrUnauthorized, nil},
		"a token that reads may not push":     {Options{ReadToken: "reader"}, "reader", nil, git.ErrForbidden},
		"an empty read token opens nothing":   {Options{ReadToken: ""}, " ", git.ErrUnauthorized, nil},
		"anonymous may read but not push":     {Options{AnonymousRead: true}, "", nil, git.ErrUnauthorized},
		"a wrong token may not push publicly": {Options{AnonymousRead: true}, "wrong", nil, git.ErrUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story.options.Token = canary
			w := start(t, story.options)
			runner, err := w.clone(t, story.token)
			if !errors.Is(err, story.clone) {
				t.Fatalf("clone: %v, want %v", err, story.clone)
			}
			if story.clone != nil {
				return
			}
			if err := push(t, runner, []byte("b")); !errors.Is(err, story.push) {
				t.Errorf("push: %v, want %v", err, story.push)
			}
		})
	}
}

func TestAProtectedBranchIsRefusedInGitHubsWords(t *testing.T) {
	w := start(t, Options{Token: canary})
	if err := gitservertest.Protect(t.Context(), w.bare, "release", "main"); err != nil {
		t.Fatal(err)
	}
	runner, err := w.clone(t, canary)
	if err != nil {
		t.Fatal(err)
	}
	err = push(t, runner, []byte("b"))
	var failed *git.Error
	if !errors.Is(err, git.ErrProtectedBranch) || !errors.As(err, &failed) ||
		!strings.Contains(failed.Stderr, "remote: error: GH006: Protected branch update failed for refs/heads/main.") {
		t.Errorf("push = %v", err)
	}
	if _, err := runner.Run(t.Context(), "push", "--quiet", "origin", "HEAD:refs/heads/other"); err != nil {
		t.Errorf("push to another branch: %v", err)
	}
	if err := gitservertest.Protect(t.Context(), w.bare); err != nil {
		t.Fatal(err)
	}
	if _, err := runner.Run(t.Context(), "push", "--quiet", "origin", "HEAD:main"); err != nil {
		t.Errorf("push after the protection was lifted: %v", err)
	}
}

func TestAPathOutsideTheFolderIsNotServed(t *testing.T) {
	w := start(t, Options{Token: canary})
	for _, path := range []string{"/team/../../etc/passwd", "//etc/passwd", "/team/x.git/../x.git/HEAD"} {
		request := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
		request.URL.Path = path
		request.SetBasicAuth("x", canary)
		answer := httptest.NewRecorder()
		handler, err := New(Options{Root: filepath.Dir(filepath.Dir(w.bare)), Token: canary})
		if err != nil {
			t.Fatal(err)
		}
		handler.ServeHTTP(answer, request)
		if answer.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", path, answer.Code)
		}
	}
}

func TestAServerThatCannotWorkSaysSoAtTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string]Options{
		"no token":              {Root: t.TempDir()},
		"no folder":             {Root: "/nonexistent", Token: canary},
		"a file, not a folder":  {Root: file, Token: canary},
		"only a token to read":  {Root: t.TempDir(), ReadToken: canary},
		"only anonymous access": {Root: t.TempDir(), AnonymousRead: true},
	} {
		if _, err := New(options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSeedBuildsOnWhatIsThereAndKeepsEveryByte(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.git")
	if err := InitBare(t.Context(), dir, "main"); err != nil {
		t.Fatal(err)
	}
	when := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	odd := "odd \"name\"\\ è.txt"
	first, err := Seed(t.Context(), dir, "main", Commit{
		Message: "First\n\nMore", Author: "A B <a@b.example>", When: when,
		Files: fstest.MapFS{
			odd:       {Data: []byte("x\r\n\x00y")},
			"run.sh":  {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
			"gone":    {Data: []byte("data 3\nabc\n")},
			"d/e/f.y": {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Seed(t.Context(), dir, "main", Commit{Remove: []string{"gone"}, Files: fstest.MapFS{"new": {Data: []byte("n")}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := InitBare(t.Context(), dir, "main"); err != nil {
		t.Errorf("a second InitBare: %v", err)
	}
	repository := git.Runner{Dir: dir}
	for _, check := range []struct{ want, args string }{
		{second + "\n" + first + "\n", "rev-list HEAD"},
		{"First\n\nMore\n", "log -1 --format=%B " + first},
		{"A B a@b.example A B 1709208000\n", "log -1 --format=%an|%ae|%cn|%ct " + first},
		{"040000 d\n100644 new\n100644 " + odd + "\n100755 run.sh\n", "ls-tree --format=%(objectmode)|%(path) main"},
		{"x\r\n\x00y", "cat-file blob main:" + strings.ReplaceAll(odd, " ", "|")},
		{"", "cat-file blob main:d/e/f.y"},
		{"", "fsck --strict"},
	} {
		args := strings.Fields(check.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "|", " ")
		}
		args = append([]string{"-c", "core.quotePath=false"}, args...)
		got, err := repository.Run(t.Context(), args...)
		if strings.HasPrefix(check.args, "ls-tree") { // quotes are written as an escape
			got = strings.ReplaceAll(got, `"odd \"name\"\\ è.txt"`, odd)
		}
		if err != nil || got != check.want {
			t.Errorf("git %s:\n got %q, %v\nwant %q", check.args, got, err, check.want)
		}
	}
	t.Run("a branch of a wrong name is refused", func(t *testing.T) {
		for _, name := range []string{"", "-x", "refs/heads/x", "a..b", "a b"} {
			if _, err := Seed(t.Context(), dir, name, Commit{}); err == nil {
				t.Errorf("%q: no error", name)
			}
		}
	})
}

func TestRepositoriesOfAnotherOwnerAreServed(t *testing.T) {
	needs.Root(t, "to give a folder to another owner")
	w := start(t, Options{Token: canary})
	if err := os.Chown(w.bare, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	runner, err := w.clone(t, canary)
	if err != nil {
		t.Fatal(err)
	}
	if err := push(t, runner, []byte("b")); err != nil {
		t.Error(err)
	}
}
