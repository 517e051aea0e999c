package worktree

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/test/tell"
)

// commitTime is the author and commit time of every test commit.
var commitTime = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

// repo is a real repository in a temporary folder.
type repo struct {
	t   *testing.T
	dir string
}

// newRepo makes a repository with one commit: blog/hugo.yaml and blog/content/post.md.
func newRepo(t *testing.T) repo {
	t.Helper()
	r := emptyRepo(t)
	r.write("blog/hugo.yaml", "title: Blog\n")
	r.write("blog/content/post.md", "hello\n")
	r.commit("First post")
	return r
}

func emptyRepo(t *testing.T) repo {
	t.Helper()
	r := repo{t, t.TempDir()}
	r.git("init", "--quiet", "--initial-branch=main")
	return r
}

// git runs git in the repository, free of the settings of whoever runs the test.
func (r repo) git(args ...string) string {
	r.t.Helper()
	out, err := r.tryGit(args...)
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

func (r repo) tryGit(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	stamp := fmt.Sprintf("%d +0000", commitTime.Unix())
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Author", "GIT_AUTHOR_EMAIL=author@example.org", "GIT_AUTHOR_DATE="+stamp,
		"GIT_COMMITTER_NAME=Author", "GIT_COMMITTER_EMAIL=author@example.org", "GIT_COMMITTER_DATE="+stamp,
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
		"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r repo) path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

func (r repo) write(name, content string) {
	r.t.Helper()
	filetest.Write(r.t, r.path(name), content)
}

func (r repo) commit(message string) (sha string) {
	r.t.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "--message="+message)
	return r.git("rev-parse", "HEAD")
}

// clone makes a clone by the transport that a remote one uses, so that --depth counts.
func (r repo) clone(args ...string) repo {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "clone")
	r.git(append(append([]string{"clone", "--quiet"}, args...), "file://"+r.dir, dir)...)
	return repo{r.t, dir}
}

// addTheme makes a repository with a theme and adds it as the submodule blog/themes/plain.
func (r repo) addTheme() (theme repo) {
	r.t.Helper()
	theme = emptyRepo(r.t)
	theme.write("layouts/index.html", "theme\n")
	theme.commit("Theme")
	r.git("submodule", "--quiet", "add", "file://"+theme.dir, "blog/themes/plain")
	r.commit("Add the theme")
	return theme
}

func (r repo) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) inspect() (Commit, error) {
	return Inspect(r.t.Context(), Options{Dir: r.dir, Subdir: "blog"})
}

func (r repo) accepted() Commit {
	r.t.Helper()
	commit, err := r.inspect()
	r.must(err)
	return commit
}

// refused expects exactly these lines, each given by its beginning.
func (r repo) refused(lines ...string) {
	r.t.Helper()
	_, err := r.inspect()
	tell.Observation(r.t, 0, "%v", err)
	r.expect(err, lines...)
}

func (r repo) expect(err error, lines ...string) {
	r.t.Helper()
	var refused *RefusedError
	if !errors.As(err, &refused) {
		r.t.Fatalf("error = %v; want a refusal", err)
	}
	var got []string
	for _, problem := range refused.Problems {
		got = append(got, problem.String())
		if problem.Fix == "" {
			r.t.Errorf("%s: no fix", problem)
		}
	}
	if len(got) != len(lines) {
		r.t.Fatalf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
	for i, line := range lines {
		if !strings.HasPrefix(got[i], line) {
			r.t.Errorf("problem %q; want %q", got[i], line)
		}
	}
}
