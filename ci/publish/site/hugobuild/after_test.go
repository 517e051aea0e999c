package hugobuild

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// built is a site with programs of npm packages that Hugo has built, and a place for what its commands say.
func built(t *testing.T, commands ...string) (AfterOptions, *bytes.Buffer) {
	t.Helper()
	top := t.TempDir()
	write(t, top, `
-- package.json --
{"devDependencies": {"stamp": "1"}}
-- package-lock.json --
{}
-- site/hugo.toml --
-- site/scripts/index.sh --
find public -name '*.html' | sort > public/index.txt
-- site/public/index.html --
home
-- site/public/posts/first/index.html --
first
`)
	program := filepath.Join(top, "node_modules", ".bin", "stamp")
	filetest.Write(t, program, "#!/bin/sh\nprintf stamp > \"$1/stamp.txt\"\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	log := &bytes.Buffer{}
	site := filepath.Join(top, "site")
	return AfterOptions{Site: site, Built: filepath.Join(site, "public"), Commands: commands, Log: log}, log
}

func TestCommandsRunInTheSitesFolderWithItsPrograms(t *testing.T) {
	opts, log := built(t, "stamp public", "sh scripts/index.sh && echo done")
	if err := After(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"stamp.txt": "stamp", "index.txt": "public/index.html\npublic/posts/first/index.html\n"} {
		if text, err := os.ReadFile(filepath.Join(opts.Built, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if want := "afterBuild: stamp public\nafterBuild: sh scripts/index.sh && echo done\ndone\n"; log.String() != want {
		t.Errorf("said %q", log)
	}
}

func TestCommandsSeeNothingOfCastlesEnvironmentAndNoNetwork(t *testing.T) {
	t.Setenv("CASTLE_GIT_TOKEN", "canary-4b1")
	opts, log := built(t, `env; test -z "${CASTLE_GIT_TOKEN:-}"`)
	if err := After(t.Context(), opts); err != nil || strings.Contains(log.String(), "canary-4b1") {
		t.Errorf("%v\n%s", err, log)
	}
	// Whatever a machine has that opens a socket says the same; perl is in every Debian.
	opts, _ = built(t, `perl -e 'use Socket; socket(S, AF_INET, SOCK_STREAM, 0) or die "no socket: $!\n"'`)
	err := After(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "Network is unreachable\nThe commands of afterBuild have no network") {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsWrongWithACommandIsSaidWithTheWayOut(t *testing.T) {
	for name, story := range map[string]struct {
		command string
		change  func(site string) error
		want    string
	}{
		"a program that is not installed": {"pagefind --site public", nil,
			"afterBuild: pagefind --site public: neither Hugo's image nor the site's lock file, from which node_modules/.bin is installed, has a program pagefind: " +
				"run npm install --save-dev pagefind and commit package.json and package-lock.json"},
		"one behind npx": {"npx --yes pagefind@1.4.0 --site public", nil, "has a program pagefind"},
		"one of a package of another name": {"stamp public && workbox generateSW", nil,
			"has a program workbox: run npm install --save-dev workbox-cli"},
		"no lock file": {"pagefind --site public", func(site string) error {
			return os.RemoveAll(filepath.Join(filepath.Dir(site), "package-lock.json"))
		}, "there is no program pagefind, and nothing is installed without a lock file of npm: run npm install --save-dev pagefind and commit"},
		"that of another program": {"pagefind --site public", func(site string) error {
			filetest.Write(t, filepath.Join(site, "yarn.lock"), "")
			return os.RemoveAll(filepath.Join(filepath.Dir(site), "package-lock.json"))
		}, "without a lock file of npm, which yarn.lock is not: run npm install"},
		"a failure": {"echo what is wrong; exit 3", nil,
			"afterBuild: echo what is wrong; exit 3: exit status 3. The end of what it said:\nwhat is wrong"},
		"a silent one": {"false", nil, "afterBuild: false: exit status 1; it said nothing"},
		"a package that a script misses": {`echo "Error: Cannot find module 'lunr'"; exit 1`, nil,
			"the site needs the npm package lunr, which its lock file does not have: run npm install --save-dev lunr"},
		"a page is removed": {"rm -r public/posts", nil,
			"afterBuild: rm -r public/posts: removed or emptied 1 of 2 pages that Hugo built, such as posts/first/index.html: "},
		"a page is emptied":  {": > public/index.html", nil, "such as index.html"},
		"all is removed":     {"rm -r public", nil, "removed or emptied 2 of 2 pages"},
		"no command at all":  {"# nothing", nil, `afterBuild: "# nothing" has no command`},
		"none for any shell": {"echo 'a", nil, `afterBuild: "echo 'a" is not a command for a shell`},
	} {
		opts, _ := built(t, story.command)
		if story.change != nil {
			if err := story.change(opts.Site); err != nil {
				t.Fatal(err)
			}
		}
		if err := After(t.Context(), opts); err == nil || !strings.Contains(err.Error(), story.want) {
			t.Errorf("%s: got %v, want %q in it", name, err, story.want)
		}
	}
}

func TestNoCommandRunsWhereAProgramOfALaterOneIsMissing(t *testing.T) {
	opts, _ := built(t, "stamp public", "pagefind --site public")
	if err := After(t.Context(), opts); err == nil {
		t.Error("it went through")
	}
	if isThere(opts.Built, "stamp.txt") {
		t.Error("the first command ran")
	}
}

func TestProgramsOfACommandAreThoseThatItNames(t *testing.T) {
	for line, want := range map[string]string{
		"pagefind --site public":                             "pagefind",
		"npx pagefind":                                       "npx pagefind",
		"npx -y @tailwindcss/cli -o public/a.css":            "npx",
		"npx --package pagefind -- pagefind":                 "npx",
		"A=1 purgecss --css public/*.css && node x.mjs | wc": "purgecss node wc",
		"./scripts/index.sh; \"$TOOL\" a":                    "",
		"go() { stamp public; }; go":                         "stamp",
		"for f in public/*.css; do minify \"$f\"; done":      "minify",
	} {
		if got, err := programsOf(line); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v, want %q", line, got, err, want)
		}
	}
}

func TestTheBuiltSiteIsWhereItsAuthorHasIt(t *testing.T) {
	for text, want := range map[string]string{"": "public", "publishDir = 'docs/'": "docs", "publishDir = '../out'": "public", "publishDir = '/srv/www'": "public"} {
		config, err := hugoconfig.Decode(".toml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := BuiltFolder(config); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
