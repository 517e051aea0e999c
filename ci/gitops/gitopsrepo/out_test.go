package gitopsrepo

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/gitserver"
)

func TestAFolderThatHoldsSomethingIsLeftAlone(t *testing.T) {
	files := Files{"clusters/green/a.yaml": []byte("a: 1\n"), "README.md": []byte("new\n")}
	folder := filepath.Join(t.TempDir(), "made")
	if err := files.Write(folder, false); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "README.md"), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := files.Write(folder, false)
	if err == nil || !strings.Contains(err.Error(), "is not empty") || !strings.Contains(err.Error(), "--over") {
		t.Errorf("got %v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(folder, "README.md")); string(text) != "mine\n" {
		t.Errorf("README.md is %q", text)
	}
	if err := os.WriteFile(filepath.Join(folder, "notes.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := files.Write(folder, true); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(filepath.Join(folder, "README.md"))
	if _, err := os.Stat(filepath.Join(folder, "notes.txt")); err != nil || string(text) != "new\n" {
		t.Errorf("%v, README.md is %q", err, text)
	}
}

const token = "canary-of-push"

// remote is an empty repository behind a server that wants the token, and how to look into it.
func remote(t *testing.T) (to Remote, look func(args ...string) string) {
	t.Helper()
	root := t.TempDir()
	bare := filepath.Join(root, "cluster.git")
	if err := gitserver.InitBare(t.Context(), bare, "main"); err != nil {
		t.Fatal(err)
	}
	handler, err := gitserver.New(gitserver.Options{Root: root, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return Remote{URL: server.URL + "/cluster.git", Branch: "main", Credentials: git.Credentials{Token: token}, AuthorName: "Me", AuthorEmail: "me@example.org"},
		func(args ...string) string {
			t.Helper()
			out, err := git.Runner{Dir: bare}.Run(context.WithoutCancel(t.Context()), args...)
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(out)
		}
}

func TestAnEmptyRemoteGetsOneCommit(t *testing.T) {
	to, look := remote(t)
	files := rendered(t, full(clusterFolder(t)))
	sha, err := files.Push(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if got := look("log", "--format=%H %an <%ae> %cn <%ce>", "main"); got != sha+" Me <me@example.org> Me <me@example.org>" {
		t.Errorf("the history is %q", got)
	}
	if got := strings.Split(look("ls-tree", "-r", "--name-only", "main"), "\n"); !slices.Equal(got, files.Paths()) {
		t.Errorf("the commit has %v", got)
	}
	if got := look("show", "main:README.md"); got != strings.TrimSpace(string(files["README.md"])) {
		t.Errorf("README.md is %q", got)
	}

	_, err = files.Push(t.Context(), to)
	if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "--over") || look("rev-list", "--count", "--all") != "1" {
		t.Errorf("a second push: %v, and %s commits", err, look("rev-list", "--count", "--all"))
	}
}

func TestARemoteWithAnyBranchIsNotEmpty(t *testing.T) {
	to, look := remote(t)
	tree := look("hash-object", "-w", "-t", "tree", os.DevNull)
	first := look("-c", "user.name=x", "-c", "user.email=x@example.org", "commit-tree", "-m", "x", tree)
	look("update-ref", "refs/heads/other", first)
	_, err := Files{"README.md": []byte("x\n")}.Push(t.Context(), to)
	if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "refs/heads/other") {
		t.Errorf("got %v", err)
	}
	if refs := look("for-each-ref", "--format=%(refname)"); refs != "refs/heads/other" {
		t.Errorf("the remote has %s", refs)
	}
}

func TestARemoteIsCheckedBeforeItIsCalled(t *testing.T) {
	_, err := Files{}.Push(t.Context(), Remote{URL: "https://me:" + token + "@git.example.org/x.git", Branch: "a..b", AuthorEmail: "me"})
	if err == nil || strings.Contains(err.Error(), token) || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v", err)
	}
	to, _ := remote(t)
	to.Credentials.Token = "wrong-" + token
	_, err = Files{"README.md": []byte("x\n")}.Push(t.Context(), to)
	if !errors.Is(err, git.ErrUnauthorized) || strings.Contains(err.Error(), token) {
		t.Errorf("got %v", err)
	}
}
