package worktree

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"tazlab.net/castle/ci/test/needs"
)

// snapshot describes every file of a folder, times included: equal snapshots mean equal exports.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == ".git" {
			return fs.SkipDir
		}
		info, err := os.Lstat(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		described := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			described += " " + string(content)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			described = "link " + target
		}
		if !info.ModTime().Equal(commitTime) {
			described += " at " + info.ModTime().String()
		}
		files[filepath.ToSlash(relative)] = described
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (r repo) export() (site string) {
	r.t.Helper()
	site, err := Export(r.t.Context(), Options{Dir: r.dir, Subdir: "blog"}, filepath.Join(r.t.TempDir(), "site"))
	r.must(err)
	return site
}

func expectFiles(t *testing.T, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Fatalf("files\n%q\nwant\n%q", got, want)
	}
}

func TestAnExportHoldsTheCommitAndNothingElse(t *testing.T) {
	r := newRepo(t)
	r.write(".gitignore", "*.tmp\n")
	r.write("blog/bin/tool", "#!/bin/sh\n")
	r.must(os.Chmod(r.path("blog/bin/tool"), 0o755))
	r.must(os.Symlink("../content/post.md", r.path("blog/bin/link")))
	r.write("other/secret", "not the site's")
	r.commit("More")
	r.write("blog/ignored.tmp", "x")
	r.write("blog/untracked", "x")
	r.write("blog/content/post.md", "changed\n")
	r.must(os.Chmod(r.path("blog/hugo.yaml"), 0o600))

	expectFiles(t, snapshot(t, r.export()), map[string]string{
		".":               "drwxr-xr-x",
		"bin":             "drwxr-xr-x",
		"bin/link":        "link ../content/post.md",
		"bin/tool":        "-rwxr-xr-x #!/bin/sh\n",
		"content":         "drwxr-xr-x",
		"content/post.md": "-rw-r--r-- hello\n",
		"hugo.yaml":       "-rw-r--r-- title: Blog\n",
	})
}

func TestAPartOfTheCommitIsWhatHEADHoldsThere(t *testing.T) {
	r := newRepo(t)
	r.write(".github/workflows/a.yml", "on: push\n")
	r.write("netlify.toml", "[build]\n")
	r.must(os.Symlink("netlify.toml", r.path(".hugo-version")))
	r.commit("More")
	r.write("netlify.toml", "changed\n")
	r.write("blog/.hugo-version", "untracked\n")
	dest := t.TempDir()
	r.must(Part(t.Context(), r.dir, dest, "netlify.toml", ".hugo-version", ".github/workflows", "blog/.hugo-version", "blog/hugo.yaml", "missing"))
	found := map[string]string{}
	r.must(fs.WalkDir(os.DirFS(dest), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			content, err := os.ReadFile(filepath.Join(dest, name))
			found[name] = string(content)
			return err
		}
		return err
	}))
	expectFiles(t, found, map[string]string{".github/workflows/a.yml": "on: push\n", "netlify.toml": "[build]\n", "blog/hugo.yaml": "title: Blog\n"})
	r.must(Part(t.Context(), r.dir, t.TempDir(), "missing"))
}

func TestACleanTreeIsInspectedAndExportedAtOnce(t *testing.T) {
	r := newRepo(t)
	r.addTheme()
	commit, site, err := Publishable(t.Context(), Options{Dir: r.dir, Subdir: "blog"}, filepath.Join(t.TempDir(), "site"))
	r.must(err)
	if want := r.accepted(); !reflect.DeepEqual(commit, want) {
		t.Errorf("commit %+v, want %+v", commit, want)
	}
	expectFiles(t, snapshot(t, site), snapshot(t, r.export()))
}

func TestATreeThatIsNotCleanIsNotExportedForPublishing(t *testing.T) {
	r := newRepo(t)
	r.write("blog/content/post.md", "changed\n")
	r.write("blog/content/new.md", "new\n")
	_, _, err := Publishable(t.Context(), Options{Dir: r.dir, Subdir: "blog"}, filepath.Join(t.TempDir(), "site"))
	r.expect(err, "blog/content/post.md: modified", "blog/content/new.md: untracked")
}

// More than one git process reads what is larger than a batch.
func TestALargeCommitIsExportedWhole(t *testing.T) {
	r := newRepo(t)
	want := map[string]string{}
	for i := range 12 {
		name := fmt.Sprintf("blog/static/%d/%d.bin", i%3, i)
		want[name] = strings.Repeat(fmt.Sprint(i), 2<<20)
		r.write(name, want[name])
	}
	r.commit("Large files")
	files := snapshot(t, r.export())
	for name, content := range want {
		if got := files[strings.TrimPrefix(name, "blog/")]; got != "-rw-r--r-- "+content {
			t.Errorf("%s has %d bytes, want %d", name, len(got), len(content))
		}
	}
}

func TestAttributesDoNotChangeTheExport(t *testing.T) {
	r := newRepo(t)
	r.write(".gitattributes", "*.md export-ignore\n*.txt export-subst ident eol=crlf\n")
	r.write("blog/a.txt", "$Format:%H$ $Id$\n")
	r.commit("Attributes")
	r.git("config", "core.autocrlf", "true")
	expectFiles(t, snapshot(t, r.export()), map[string]string{
		".":               "drwxr-xr-x",
		"a.txt":           "-rw-r--r-- $Format:%H$ $Id$\n",
		"content":         "drwxr-xr-x",
		"content/post.md": "-rw-r--r-- hello\n",
		"hugo.yaml":       "-rw-r--r-- title: Blog\n",
	})
}

func TestAnExportHoldsSubmodulesAtTheirRecordedCommits(t *testing.T) {
	r := newRepo(t)
	r.addTheme()
	inside := repo{t, r.path("blog/themes/plain")}
	inside.write("layouts/index.html", "moved on\n")
	inside.commit("Move on")
	files := snapshot(t, r.export())
	if files["themes/plain/layouts/index.html"] != "-rw-r--r-- theme\n" || len(files) != 8 {
		t.Fatalf("%q", files)
	}
}

func TestAnExportWithoutItsSubmoduleIsRefused(t *testing.T) {
	r := newRepo(t)
	r.addTheme()
	clone := r.clone()
	_, err := Export(t.Context(), Options{Dir: clone.dir, Subdir: "blog"}, filepath.Join(t.TempDir(), "site"))
	r.expect(err, "blog/themes/plain: the submodule is missing; ")
}

func TestTheUmaskDoesNotChangeTheExport(t *testing.T) {
	r := newRepo(t)
	want := snapshot(t, r.export())
	defer syscall.Umask(syscall.Umask(0o077))
	expectFiles(t, snapshot(t, r.export()), want)
}

func TestTheWholeRepositoryCanBeTheSite(t *testing.T) {
	r := newRepo(t)
	site, err := Export(t.Context(), Options{Dir: r.dir}, filepath.Join(t.TempDir(), "site"))
	r.must(err)
	if files := snapshot(t, site); files["blog/hugo.yaml"] != "-rw-r--r-- title: Blog\n" {
		t.Fatalf("%q", files)
	}
}

func TestTheSameCommitExportsAlikeFromAnotherClone(t *testing.T) {
	r := newRepo(t)
	r.addTheme()
	expectFiles(t, snapshot(t, r.clone("--recurse-submodules", "--depth=1").export()), snapshot(t, r.export()))
}

func TestContentLargerThanABatchArrivesWhole(t *testing.T) {
	r := newRepo(t)
	large := strings.Repeat("0123456789abcdef", (batch+4096)/16)
	r.write("blog/large", large)
	r.write("blog/empty", "")
	r.write("blog/no newline", "x")
	r.commit("Large")
	files := snapshot(t, r.export())
	if files["large"] != "-rw-r--r-- "+large || files["empty"] != "-rw-r--r-- " || files["no newline"] != "-rw-r--r-- x" {
		t.Fatal("content differs")
	}
}

func TestALinkOutOfTheSiteIsRefused(t *testing.T) {
	r := newRepo(t)
	r.must(os.Symlink("/etc/passwd", r.path("blog/absolute")))
	r.must(os.Symlink("../../other", r.path("blog/content/up")))
	r.must(os.Symlink("content", r.path("blog/inside")))
	r.must(os.MkdirAll(r.path("blog/deep/er"), 0o755))
	r.must(os.Symlink("../..", r.path("blog/deep/er/top")))
	r.must(os.Symlink("top/../other", r.path("blog/deep/er/through"))) // by its text inside, in truth beside the top
	r.commit("Links")
	_, err := Export(t.Context(), Options{Dir: r.dir, Subdir: "blog"}, filepath.Join(t.TempDir(), "site"))
	r.expect(err,
		"blog/absolute: a symbolic link to /etc/passwd, outside",
		"blog/content/up: a symbolic link to ../../other, outside",
		"blog/deep/er/through: a symbolic link to top/../other, outside",
	)
}

func TestAnExportIntoAFolderInUseIsRefused(t *testing.T) {
	r := newRepo(t)
	if _, err := Export(t.Context(), Options{Dir: r.dir, Subdir: "blog"}, r.dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Fatalf("error = %v", err)
	}
}

func TestASiteThatReadsTheHistoryIsExportedWithIt(t *testing.T) {
	r := newRepo(t)
	first := r.git("rev-parse", "HEAD")
	r.write("blog/hugo.yaml", "enableGitInfo: true\n")
	second := r.commit("Dates from Git")
	r.write("blog/content/post.md", "uncommitted\n")
	r.git("checkout", "--quiet", "--detach")

	site := r.export()
	if filepath.Base(site) != "blog" {
		t.Fatalf("the site is at %s, not where it is in the repository", site)
	}
	exported := repo{t, site}
	log := exported.git("log", "--format=%H", "--name-only", "HEAD")
	want := fmt.Sprintf("%s\n\nblog/hugo.yaml\n%s\n\nblog/content/post.md\nblog/hugo.yaml", second, first)
	if log != want {
		t.Fatalf("log\n%s\nwant\n%s", log, want)
	}
	if content, err := os.ReadFile(filepath.Join(site, "content/post.md")); err != nil || string(content) != "hello\n" {
		t.Fatalf("%q, %v", content, err)
	}
	if config := exported.git("config", "--list", "--local"); strings.Contains(config, "remote.") {
		t.Fatalf("configuration came along:\n%s", config)
	}
}

func TestASiteThatReadsTheHistoryIsNotExportedFromAShallowClone(t *testing.T) {
	r := newRepo(t)
	r.write("blog/hugo.yaml", "enableGitInfo: true\n")
	r.commit("Dates from Git")
	clone := r.clone("--depth=1")
	_, err := Export(t.Context(), Options{Dir: clone.dir, Subdir: "blog"}, filepath.Join(t.TempDir(), "site"))
	r.expect(err, "the clone is shallow")
}

func TestHugoFindsTheDatesInAnExport(t *testing.T) {
	hugo := needs.Programs(t, "hugo")["hugo"]
	r := newRepo(t)
	r.write("blog/hugo.yaml", "enableGitInfo: true\ndisableKinds: [taxonomy, term, sitemap, rss]\n")
	r.write("blog/content/post.md", "---\ntitle: Post\n---\nhello\n")
	r.write("blog/layouts/all.html", "{{ with .GitInfo }}{{ .Hash }} {{ .Subject }}{{ end }}\n")
	sha := r.commit("Dates from Git")
	cmd := exec.Command(hugo, "--quiet", "--destination", t.TempDir()+"/public", "--source", r.export())
	public := cmd.Args[3]
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	page, err := os.ReadFile(filepath.Join(public, "post/index.html"))
	if err != nil || strings.TrimSpace(string(page)) != sha+" Dates from Git" {
		t.Fatalf("%q, %v", page, err)
	}
}
