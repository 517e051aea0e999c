package hugoversion

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestTheVersionOfNpmsPackageIsHeard(t *testing.T) {
	for _, story := range []struct{ name, file, text, want string }{
		{"exact", "package.json", `{"devDependencies": {"hugo-extended": "0.128.2"}}`, "0.128.2"},
		{"a range", "package.json", `{"devDependencies": {"hugo-extended": "^0.128.2"}}`, "0.165.0"},
		{"a lock", "site/package-lock.json", `{"packages": {"node_modules/hugo-extended": {"version": "0.128.2"}}}`, "0.128.2"},
		{"no JSON", "package.json", `{`, "0.165.0"},
	} {
		repository := fstest.MapFS{story.file: {Data: []byte(story.text)}}
		got, err := Resolve(repository, "site", Choice{}, "0.165.0")
		if err != nil || got.Version != story.want {
			t.Errorf("%s: %v, %v, want %s", story.name, got, err, story.want)
		}
	}
}

func TestWhatIsNotHeededIsSaid(t *testing.T) {
	repository := fstest.MapFS{
		".tool-versions":           {Data: []byte("nodejs 20.1.0\nhugo extended_0.128.2\n")},
		"site/mise.toml":           {Data: []byte("[tools]\nhugo = \"0.127.0\"\n")},
		".gitea/workflows/ci.yaml": {Data: []byte("env:\n  HUGO_VERSION: 0.126.1\n")},
		".gitlab-ci.yml":           {Data: []byte("image: hugomods/hugo:0.127.0\n")},
		"Dockerfile":               {Data: []byte("FROM node:20.1.0\n")},
		"netlify.toml": {Data: []byte(`[build]
command = "npm i && hugo --gc --minify --buildFuture --environment=staging && other --flag"
[build.environment]
HUGO_VERSION = "0.165.0"
HUGO_ENABLEGITINFO = "true"
`)},
	}
	for from, want := range map[string][]string{
		Default: {
			".tool-versions names Hugo 0.128.2, and castle does not read it: write hugo: 0.128.2 for the site",
			"site/mise.toml, .gitlab-ci.yml name Hugo 0.127.0, and castle does not read them", ".gitea/workflows/ci.yaml names Hugo 0.126.1",
			"netlify.toml: HUGO_ENABLEGITINFO, --buildFuture, --environment have no effect",
		},
		"castle.yaml": {"netlify.toml: HUGO_ENABLEGITINFO, --buildFuture, --environment have no effect"},
	} {
		notes, err := Unheard(repository, "site", Choice{"0.165.0", from})
		if err != nil || len(notes) != len(want) {
			t.Fatalf("%s: %q, %v", from, notes, err)
		}
		for i, note := range notes {
			if !strings.HasPrefix(note, want[i]) {
				t.Errorf("%s: %q, want %q", from, note, want[i])
			}
		}
	}
}
