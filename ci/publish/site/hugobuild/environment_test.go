package hugobuild

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Hugo's image sets core.quotePath for its own user, and this build is another's.
func TestAPageWhoseFileNameIsNotASCIIHasItsHistory(t *testing.T) {
	opts := workshop(t, `
-- hugo.toml --
enableGitInfo = true
baseURL = "https://castle.dev/"
-- layouts/home.html --
{{ range site.RegularPages }}{{ .File.LogicalName }}:{{ with .GitInfo }}{{ .Subject }}{{ end }} {{ end }}
-- content/first.md --
---
title: 1
---
-- content/über uns.md --
---
title: 2
---
-- content/日本語の記事.md --
---
title: 3
---
`)
	t.Setenv("HOME", t.TempDir())
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "--all"},
		{"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message=Posts"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = opts.Site
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	if err := opts.build(t); err != nil {
		t.Fatal(err)
	}
	if got := opts.page(t); strings.Count(got, ":Posts") != 3 {
		t.Errorf("got %q", got)
	}
}

func TestASiteWithoutAPageIsRefused(t *testing.T) {
	workshop(t, "-- hugo.toml --\ntitle = 'x'\n-- content/a.md --\n").failsWith(t, "the built site has no page", "themesDir, contentDir and module.mounts")
}

// A program of a workspace is in node_modules at the repository's root.
func TestProgramsOfPackagesAboveTheSiteAreOnPATHNearestFirst(t *testing.T) {
	top := t.TempDir()
	t.Setenv("PATH", "/usr/bin")
	var want []string
	for _, folder := range []string{"a/b", "a"} {
		programs := filepath.Join(top, folder, "node_modules", ".bin")
		if err := os.MkdirAll(programs, 0o755); err != nil {
			t.Fatal(err)
		}
		want = append(want, programs)
	}
	if got := searchPath(filepath.Join(top, "a/b/site")); got != strings.Join(append(want, "/usr/bin"), ":") {
		t.Errorf("PATH is %s", got)
	}
}
