package hugobuild

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/test/needs"
)

// Hugo's image sets core.quotePath for its own user, and this build is another's.
func TestAPageWhoseFileNameIsNotASCIIHasItsHistory(t *testing.T) {
	opts := workshop(t, `
-- hugo.toml --
enableGitInfo = true
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
func TestHugoFindsProgramsThatAreInstalledAboveTheSite(t *testing.T) {
	needs.Command(t, "nodejs", "node")
	opts := workshop(t, `
-- hugo.toml --
[security.node.permissions]
disable = true # which Debian's Node.js does not have
-- assets/main.css --
a { color: red }
-- layouts/home.html --
{{ (resources.Get "main.css" | css.PostCSS).Content }}
-- ../node_modules/postcss-cli/index.js --
#!/usr/bin/env node
process.stdin.on("data", text => process.stdout.write(String(text).toUpperCase()))
`)
	programs := filepath.Join(opts.Site, "..", "node_modules", ".bin")
	if err := os.Mkdir(programs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(programs, "..", "postcss-cli", "index.js"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../postcss-cli/index.js", filepath.Join(programs, "postcss")); err != nil {
		t.Fatal(err)
	}
	if err := opts.build(t); err != nil {
		t.Fatal(err)
	}
	if got := opts.page(t); !strings.Contains(got, "COLOR: RED") {
		t.Errorf("got %q", got)
	}
}
