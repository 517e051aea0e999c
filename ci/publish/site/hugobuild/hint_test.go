package hugobuild

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatRanAfterHugoElsewhereIsNamedWithTheSettingToWrite(t *testing.T) {
	const list = "-- package.json --\n"
	const wanted = "write afterBuild: [pagefind --site public] for the site in castle.yaml"
	for name, story := range map[string]struct{ archive, want string }{
		"a build script":        {list + `{"scripts": {"build": "hugo --minify && npx pagefind --site public"}}` + "\n", "the script build of package.json"},
		"a postbuild":           {list + `{"scripts": {"build": "hugo", "postbuild": "node index.mjs"}}` + "\n", "write afterBuild: [node index.mjs]"},
		"one with a pattern":    {list + `{"scripts": {"build": "hugo && purgecss --css public/*.css"}}` + "\n", "write afterBuild: ['purgecss --css public/*.css']"},
		"a deployment":          {list + `{"scripts": {"deploy": "hugo && gh-pages -d public"}}` + "\n", ""},
		"a server":              {list + `{"scripts": {"start": "hugo server && echo", "poststart": "x"}}` + "\n", ""},
		"another program":       {list + `{"scripts": {"build": "hugo-bin && x", "postbuild": "x"}}` + "\n", ""},
		"Pagefind is installed": {list + `{"devDependencies": {"pagefind": "1.4.0"}}` + "\n", "package.json has Pagefind, and nothing runs it after Hugo, so that the image has no search: " + wanted},
		"its files are there":   {list + `{"devDependencies": {"pagefind": "1.4.0"}}` + "\n-- public/pagefind/pagefind.js --\n", ""},
		"a page loads it":       {"-- public/a/index.html --\n<script src=/pagefind/pagefind-ui.js></script>\n", "a/index.html loads the search that Pagefind makes after Hugo, and the image has none: run npm install --save-dev pagefind, commit"},
		"a script loads it":     {"-- public/js/search.js --\nawait import(\"../pagefind/pagefind.js\")\n", "js/search.js loads"},
		"a page is about it":    {"-- public/a/index.html --\n<code>&lt;script src=&quot;/pagefind/pagefind-ui.js&quot;</code> and /pagefind/pagefind.js\n", ""},
		"nothing of it":         {"-- public/index.html --\nhome\n", ""},
	} {
		site := t.TempDir()
		write(t, site, story.archive+"-- public/index.html --\nhome\n")
		got, err := MissedAfterBuild(site, filepath.Join(site, "public"))
		if err != nil || (got == "") != (story.want == "") || !strings.Contains(got, story.want) {
			t.Errorf("%s: %q, %v, want %q in it", name, got, err, story.want)
		}
	}
}
