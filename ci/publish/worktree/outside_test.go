package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"tazlab.net/castle/ci/test/needs"
)

// names are the files and links of an export.
func names(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	for name, described := range snapshot(t, dir) {
		if described[0] != 'd' {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files
}

// contentOf is a file's content.
func contentOf(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// exportedTop exports the site blog and returns the folder that it was exported to.
func (r repo) exportedTop() (top, site string) {
	r.t.Helper()
	top = filepath.Join(r.t.TempDir(), "export")
	site, err := Export(r.t.Context(), Options{Dir: r.dir, Subdir: "blog"}, top)
	r.must(err)
	return top, site
}

const mountsDocs = "module: {mounts: [{source: ../docs, target: content/docs}]}\n"

func TestWhatTheConfigurationNamesOutsideTheSiteIsExported(t *testing.T) {
	r := newRepo(t)
	r.write("blog/hugo.yaml", mountsDocs)
	r.write("docs/a.md", "a\n")
	r.must(os.Symlink("../README.md", r.path("docs/readme.md")))
	r.write("README.md", "not named\n")
	r.write("app/main.go", "not named\n")
	r.commit("Docs")
	r.write("docs/ignored", "x")
	r.write("docs/a.md", "changed\n")
	top, site := r.exportedTop()
	if want := []string{"blog/content/post.md", "blog/hugo.yaml", "docs/a.md", "docs/readme.md"}; !slices.Equal(names(t, top), want) {
		t.Errorf("%q, want %q", names(t, top), want)
	}
	if site != filepath.Join(top, "blog") {
		t.Errorf("the site is %s", site)
	}
	if content := contentOf(t, filepath.Join(top, "docs/a.md")); content != "a\n" {
		t.Errorf("docs/a.md holds %q", content)
	}
	r.refused("docs/a.md: modified", "docs/ignored: untracked")
}

func TestFilesOutsideTheSiteAreTakenFromSubmodulesAndFromGitLFS(t *testing.T) {
	r := newRepo(t)
	theme := emptyRepo(t)
	theme.write("one/layouts/index.html", "theme\n")
	theme.write("two/layouts/index.html", "not used\n")
	theme.commit("Themes")
	r.git("submodule", "--quiet", "add", "file://"+theme.dir, "themes")
	r.write("blog/hugo.yaml", "{themesDir: ../themes, theme: one, staticDir: ../files}\n")
	r.write("files/large.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:"+
		"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881\nsize 1\n")
	r.commit("Theme and files")
	_, err := Export(t.Context(), Options{Dir: r.dir, Subdir: "blog"}, filepath.Join(t.TempDir(), "export"))
	r.expect(err, "files/large.bin: is kept in Git LFS")

	r.write(".git/lfs/objects/2d/71/2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", "x")
	top, _ := r.exportedTop()
	want := []string{"blog/content/post.md", "blog/hugo.yaml", "files/large.bin", "themes/one/layouts/index.html"}
	if !slices.Equal(names(t, top), want) || contentOf(t, filepath.Join(top, "files/large.bin")) != "x" {
		t.Errorf("%q, want %q", names(t, top), want)
	}
}

func TestAThemesExampleSiteIsExportedWithItsTheme(t *testing.T) {
	r := newRepo(t)
	r.write("theme.toml", "")
	r.write("layouts/index.html", "theme\n")
	r.write("blog/hugo.yaml", "{themesDir: ../.., theme: nice, enableGitInfo: true}\n")
	sha := r.commit("Theme")
	top, site := r.exportedTop()
	if site != filepath.Join(top, "nice", "blog") {
		t.Errorf("the site is %s", site)
	}
	want := []string{"nice/blog/content/post.md", "nice/blog/hugo.yaml", "nice/layouts/index.html", "nice/theme.toml"}
	if !slices.Equal(names(t, top), want) {
		t.Errorf("%q, want %q", names(t, top), want)
	}
	if head := (repo{t, site}).git("rev-parse", "HEAD"); head != sha {
		t.Errorf("the export's history is at %s, want %s", head, sha)
	}
}

func TestTheNamesOfAuthorsComeAlongWithTheHistory(t *testing.T) {
	r := newRepo(t)
	r.write("blog/hugo.yaml", "enableGitInfo: true\n")
	r.write(".mailmap", "Real Name <author@example.org>\n")
	r.commit("Names")
	if top, _ := r.exportedTop(); !slices.Contains(names(t, top), ".mailmap") {
		t.Errorf("%q", names(t, top))
	}
}

func TestWhatWouldBeMissingInTheSiteIsRefused(t *testing.T) {
	r := newRepo(t)
	r.write(".gitignore", "generated\n")
	r.write("blog/hugo.yaml", "{dataDir: generated, contentDir: ../../elsewhere, staticDir: /srv, layoutDir: ../gone}\n")
	r.must(os.Symlink("../other/a.md", r.path("blog/a.md")))
	r.write("other/a.md", "a\n")
	r.commit("Paths")
	r.write("blog/generated/facts.json", "{}\n")
	r.refused(
		`blog/hugo.yaml:1: contentDir = "../../elsewhere" leads out of the repository: `,
		`blog/hugo.yaml:1: layoutDir = "../gone" is not in the commit: `,
		`blog/hugo.yaml:1: staticDir = "/srv" is an absolute path`,
		`blog/generated: is in the working tree and not in the commit`,
	)
	r.write("blog/hugo.yaml", mountsDocs)
	r.write("docs/a.md", "a\n")
	r.commit("Docs")
	_, err := Export(t.Context(), Options{Dir: r.dir, Subdir: "blog"}, filepath.Join(t.TempDir(), "export"))
	r.expect(err, "blog/a.md: a symbolic link to ../other/a.md, outside the published folder")
}

func TestALookAtASiteTakesWhatItNamesOutsideAsItIs(t *testing.T) {
	r := newRepo(t)
	r.write("blog/hugo.yaml", mountsDocs)
	r.write("docs/a.md", "not committed\n")
	dest := filepath.Join(t.TempDir(), "export")
	site, err := Copy(Options{Dir: r.dir, Subdir: "blog"}, dest)
	r.must(err)
	if site != filepath.Join(dest, "blog") || contentOf(t, filepath.Join(dest, "docs/a.md")) != "not committed\n" {
		t.Errorf("%s: %q", site, names(t, dest))
	}
	r.write("blog/hugo.yaml", "staticDir: /srv\n")
	_, err = Copy(Options{Dir: r.dir, Subdir: "blog"}, filepath.Join(t.TempDir(), "export"))
	r.expect(err, `blog/hugo.yaml:1: staticDir = "/srv" is an absolute path`)
}

// The export has the same pages as Hugo makes of a clone.
func TestHugoBuildsAnExportAsItBuildsTheClone(t *testing.T) {
	hugo := needs.Programs(t, "hugo")["hugo"]
	r := newRepo(t)
	r.write("blog/hugo.yaml", "enableGitInfo: true\n"+mountsDocs)
	r.write("blog/content/post.md", "---\ntitle: Post\n---\n")
	r.write("blog/layouts/all.html", "{{ with .GitInfo }}{{ .AuthorName }} {{ .Subject }}{{ end }}\n")
	r.write("docs/_index.md", "---\ntitle: Docs\n---\n")
	r.write("docs/über uns.md", "---\ntitle: About\n---\n")
	r.write(".mailmap", "Real Name <author@example.org>\n")
	r.commit("Docs")
	home := repo{t, t.TempDir()}
	home.write(".gitconfig", "[core]\n\tquotePath = false\n")
	t.Setenv("HOME", home.dir)
	build := func(site string) map[string]string {
		t.Helper()
		public := filepath.Join(t.TempDir(), "public")
		cmd := exec.Command(hugo, "--quiet", "--destination", public, "--source", site)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		files := map[string]string{}
		for _, name := range names(t, public) {
			if filepath.Ext(name) == ".html" {
				files[name] = contentOf(t, filepath.Join(public, name))
			}
		}
		return files
	}
	got, want := build(r.export()), build(r.path("blog"))
	expectFiles(t, got, want)
	if got["docs/über-uns/index.html"] != "Real Name Docs\n" {
		t.Errorf("%q", got)
	}
}
