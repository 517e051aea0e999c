package hugopaths

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// memory is a repository in memory.
type memory map[string]string

func (m memory) Files(at string) ([]string, error) {
	names := slices.Sorted(maps.Keys(m))
	return slices.DeleteFunc(names, func(name string) bool { return !Within(name, at) }), nil
}

func (m memory) Read(names []string, use func(string, []byte) error) error {
	for _, name := range names {
		if err := use(name, []byte(m[name])); err != nil {
			return err
		}
	}
	return nil
}

// found is what a site in the folder website needs outside, as lines.
func found(t *testing.T, archive string) string {
	t.Helper()
	return foundWith(t, archive, false)
}

func foundWith(t *testing.T, archive string, packages bool) string {
	t.Helper()
	repository := memory{}
	for _, file := range txtar.Parse([]byte(archive)).Files {
		repository[file.Name] = string(file.Data)
	}
	outside, err := Find(repository, "website", packages)
	if err != nil {
		t.Fatal(err)
	}
	lines := outside.Paths
	if outside.Top != "" {
		lines = append(lines, "as "+outside.Top)
	}
	for _, missing := range outside.Missing {
		lines = append(lines, "missing "+missing.Path+" ("+missing.Said+")")
	}
	for _, problem := range outside.Problems {
		if problem.Fix == "" {
			t.Errorf("%s: no fix", problem.What)
		}
		lines = append(lines, strings.TrimSpace(problem.Path+" "+problem.What))
	}
	return strings.Join(lines, "\n")
}

type story struct{ name, archive, want string }

func tell(t *testing.T, stories []story) {
	t.Helper()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			if got := found(t, s.archive); got != s.want {
				t.Errorf("got\n%s\nwant\n%s", got, s.want)
			}
		})
	}
}

func TestFoldersOutsideTheSiteAreFound(t *testing.T) {
	tell(t, []story{
		{"nothing is named", "-- website/hugo.toml --\ntitle = 'x'\n-- website/content/a.md --\n-- docs/a.md --\n", ""},
		{"mounts", `
-- website/hugo.toml --
[[module.mounts]]
source = "../docs/public"
target = "content/docs"
[[module.mounts]]
source = "../README.md"
target = "content/readme.md"
[[module.mounts]]
source = "../drafts"
target = "archetypes"
-- docs/public/a.md --
-- docs/private/a.md --
-- README.md --
`, "README.md\ndocs/public"},
		{"every kind of folder", `
-- website/config.yaml --
contentDir: ../c
dataDir: ../d
layoutDir: ../l
i18nDir: ../i
assetDir: ../a
archetypeDir: ../gone
staticDir: [../s, static]
staticDir0: ../s0
staticDir10: [../s10]
-- c/x --
-- d/x --
-- l/x --
-- i/x --
-- a/x --
-- s/x --
-- s0/x --
-- s10/x --
-- website/static/x --
`, "a\nc\nd\ni\nl\ns\ns0\ns10"},
		{"languages, in a file of their own", `
-- website/config/_default/languages.toml --
[de]
contentDir = "../texte/de"
[en]
contentDir = "../texts/en"
staticDir1 = "../en-static"
-- texte/de/a.md --
-- texts/en/a.md --
-- en-static/x --
`, "en-static\ntexte/de\ntexts/en"},
		{"a language's own file", "-- website/config/_default/languages.de.json --\n{\"ContentDir\": \"../de\"}\n-- de/a.md --\n", "de"},
		{"production has the last word", `
-- website/hugo.json --
{"contentDir": "../one"}
-- website/config/_default/module.yaml --
mounts: [{source: ../default, target: static}]
-- website/config/production/hugo.toml --
contentDir = "../two"
-- website/config/staging/hugo.toml --
contentDir = "../three"
-- one/a.md --
-- two/a.md --
-- three/a.md --
-- default/x --
`, "default\ntwo"},
		{"mounted content makes contentDir count for nothing", `
-- website/hugo.toml --
contentDir = "/srv/content"
[[module.mounts]]
source = "../docs"
target = "content"
-- docs/a.md --
`, "docs"},
		{"a folder above the site", "-- website/hugo.toml --\n[[module.mounts]]\nsource = '..'\ntarget = 'assets/all'\n-- a/b --\n", "."},
	})
}

func TestThemesAndModulesOutsideTheSiteAreFound(t *testing.T) {
	tell(t, []story{
		{"only the themes that are used, with those that they use", `
-- website/hugo.toml --
themesDir = "../themes"
theme = ["one"]
-- themes/one/hugo.toml --
theme = "two"
-- themes/two/layouts/x --
-- themes/three/layouts/x --
`, "themes/one\nthemes/two"},
		{"the repository is the theme", `
-- theme.toml --
-- layouts/index.html --
-- website/hugo.toml --
theme = "nice"
themesDir = "../.."
`, ".\nas nice"},
		{"the repository is the theme, by a replacement", `
-- theme.toml --
-- website/hugo.toml --
[module]
replacements = "github.com/me/nice -> ../.."
[[module.imports]]
path = "github.com/me/nice"
`, "."},
		{"a replaced module, its imports and its sum", `
-- website/hugo.toml --
[module]
workspace = "../hugo.work"
[[module.imports]]
path = "example.org/theme"
-- website/go.mod --
module example.org/site
replace example.org/lib v1.0.0 => ../lib
replace example.org/other => example.org/fork v1.0.0
-- lib/go.mod --
module example.org/lib
-- hugo.work --
go 1.26
use (
	./website
	./theme
)
-- hugo.work.sum --
-- theme/go.mod --
module example.org/theme
replace example.org/deep => ../deep
-- theme/config.toml --
[[module.imports]]
path = "example.org/deep"
-- deep/go.mod --
module example.org/deep
`, "deep\nhugo.work\nhugo.work.sum\nlib\ntheme"},
		{"a vendored site needs no replacement", `
-- website/hugo.toml --
[[module.imports]]
path = "example.org/theme"
-- website/go.mod --
module example.org/site
replace example.org/theme => /home/me/theme
-- website/_vendor/modules.txt --
# example.org/theme v1.0.0
-- website/_vendor/example.org/theme/layouts/x --
`, ""},
		{"modules that are downloaded", "-- website/hugo.toml --\n[[module.imports]]\npath = 'example.org/theme'\n-- website/go.mod --\nmodule x.org/x\n", ""},
		{"a disabled import", "-- website/hugo.toml --\n[[module.imports]]\npath = '../../elsewhere'\ndisable = true\n", ""},
	})
}

func TestWhatCannotBeFollowedIsNamed(t *testing.T) {
	tell(t, []story{
		{"absolute", "-- website/hugo.toml --\ntitle = 'x'\nstaticDir = '/srv/static'\n",
			`website/hugo.toml:2: staticDir = "/srv/static" is an absolute path, which only one machine has`},
		{"out of the repository", "-- website/hugo.toml --\n[[module.mounts]]\nsource = '../../docs'\ntarget = 'content'\n",
			`website/hugo.toml:2: module.mounts.source = "../../docs" leads out of the repository`},
		{"not in the commit", "-- website/config/_default/module.toml --\n[[mounts]]\nsource = '../docs'\ntarget = 'content'\n",
			`website/config/_default/module.toml:2: module.mounts.source = "../docs" is not in the commit`},
		{"made for each build", "-- website/hugo.toml --\n[[module.mounts]]\nsource = '../node_modules/bootstrap'\ntarget = 'assets/b'\n" +
			"[[module.mounts]]\nsource = 'hugo_stats.json'\ntarget = 'assets/watching/hugo_stats.json'\n", ""},
		{"a missing folder of the site", "-- website/hugo.toml --\ndataDir = 'facts'\n", `missing website/facts (website/hugo.toml:1: dataDir = "facts")`},
		{"no content", "-- website/hugo.toml --\ncontentDir = 'texts'\n", `missing website/texts (website/hugo.toml:1: contentDir = "texts")
website/hugo.toml:1: contentDir = "texts" is not in the commit, so that the site would have no page`},
		{"a replaced module", "-- website/hugo.toml --\n[[module.imports]]\npath = 'example.org/a'\n-- website/go.mod --\nmodule x\n\nreplace example.org/a => ../a\n",
			`website/go.mod:3: replace example.org/a => ../a is not in the commit`},
		{"a workspace", "-- website/hugo.toml --\n[module]\nworkspace = '../hugo.work'\n", `website/hugo.toml:2: module.workspace = "../hugo.work" is not in the commit`},
		{"a theme", "-- website/hugo.toml --\nthemesDir = '../themes'\ntheme = 'nice'\n",
			`website/hugo.toml:2: theme = "nice" is not in the commit, where it would be themes/nice`},
		{"a theme beside the repository", "-- website/hugo.toml --\nthemesDir = '../..'\ntheme = 'nice'\n", `website/hugo.toml:2: theme = "nice" leads out of the repository`},
	})
}

func TestTheLockAboveASiteIsFoundWhereTheSiteAsksForPackages(t *testing.T) {
	const list, lock = "-- package.json --\n{}\n", `-- package-lock.json --
{"packages": {"": {}, "website": {"dependencies": {"ui": "*"}}, "packages/ui": {}, "packages/app": {},
 "node_modules/ui": {"resolved": "packages/ui", "link": true}, "node_modules/app": {"resolved": "packages/app", "link": true}}}
-- packages/ui/package.json --
-- packages/ui/index.js --
-- packages/app/package.json --
-- packages/app/index.js --
`
	const root = "package-lock.json\npackage.json\npackages/app/package.json"
	tell(t, []story{
		{"a template", list + lock + "-- website/layouts/a.html --\n{{ . | css.PostCSS }}\n", root + "\npackages/ui"},
		{"a workspace", list + lock + "-- .npmrc --\n-- website/package.json --\n{}\n", ".npmrc\n" + root + "\npackages/ui"},
		{"nothing of it", list + lock + "-- website/layouts/a.html --\n<p>\n", ""},
		{"a lock of its own", list + lock + "-- website/package.json --\n-- website/package-lock.json --\n", ""},
		{"a configuration of postcss", list + lock + "-- website/postcss.config.mjs --\n", root + "\npackages/ui"},
	})
	if got := foundWith(t, list+lock+"-- website/layouts/a.html --\n<p>\n", true); got != root+"\npackages/ui" {
		t.Errorf("asked for by a setting: %q", got)
	}
}
