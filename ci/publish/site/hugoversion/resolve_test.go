package hugoversion

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const ours = "0.165.0"

func repository(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{"README.md": {Data: []byte("a blog\n")}}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

func TestTheMostParticularPlaceNamesTheVersion(t *testing.T) {
	const workflow = `on: push
env:
  HUGO_VERSION: 0.148.1
  OTHER: x
jobs:
  build:
    steps:
      - uses: peaceiris/actions-hugo@v3
        with: {hugo-version: '${{ env.HUGO_VERSION }}', extended: true}
`
	for name, c := range map[string]struct {
		files map[string]string
		site  string
		asked Choice
		want  Choice
	}{
		"nobody": {want: Choice{ours, Default}},
		"castle.yaml before all else": {
			files: map[string]string{".hugo-version": "0.111.2", "netlify.toml": "no = TOML ="},
			asked: Choice{"0.150.0", "castle.yaml"}, want: Choice{"0.150.0", "castle.yaml"},
		},
		".hugo-version before the workflow": {
			files: map[string]string{".hugo-version": "v0.111.2\n", ".github/workflows/a.yml": workflow}, want: Choice{"0.111.2", ".hugo-version"},
		},
		"the site's .hugo-version before the root's": {
			files: map[string]string{".hugo-version": "0.111.2", "blog/.hugo-version": "extended_0.113.4"}, site: "blog", want: Choice{"0.113.4", "blog/.hugo-version"},
		},
		"the root's .hugo-version": {files: map[string]string{".hugo-version": "0.111.2"}, site: "./blog/", want: Choice{"0.111.2", ".hugo-version"}},
		"a .hugo-version that pins nothing": {
			files: map[string]string{".hugo-version": "latest\n", "netlify.toml": "[build.environment]\nHUGO_VERSION = '0.111.2'\n"}, want: Choice{"0.111.2", "netlify.toml"},
		},
		"a workflow's env": {files: map[string]string{".github/workflows/a.yml": workflow}, want: Choice{"0.148.1", ".github/workflows/a.yml:3"}},
		"a job's env, a step's env, a step's with, all alike": {
			files: map[string]string{
				".github/workflows/a.yaml": "jobs:\n  a:\n    env: {HUGO_VERSION: '0.148.1'}\n    steps:\n      - env:\n          HUGO_VERSION: v0.148.1\n",
				".github/workflows/b.yml":  "jobs: {a: {steps: [{with: {hugo-version: \"0.148.1\"}}]}}\n",
			},
			want: Choice{"0.148.1", ".github/workflows/a.yaml:3, .github/workflows/a.yaml:6, .github/workflows/b.yml:1"},
		},
		"what a workflow does not pin, or cannot be read, or is none": {
			files: map[string]string{
				".github/workflows/a.yml":    "jobs: {a: {steps: [{with: {hugo-version: latest}}, {with: {hugo-version: '${{ matrix.hugo }}'}}, {env: {HUGO_VERSION: }}]}}\n",
				".github/workflows/b.yml":    "a: b: c\n",
				".github/workflows/notes.md": "env: {HUGO_VERSION: 0.111.2}\n",
				".github/workflows/c.yml":    "hugo-version: 0.111.2\nenv: HUGO_VERSION\nHUGO_VERSION: 0.111.2\n",
			},
			want: Choice{ours, Default},
		},
		"an env by its anchor": {
			files: map[string]string{".github/workflows/a.yml": "x: &x {HUGO_VERSION: 0.111.2}\nenv: *x\n"}, want: Choice{"0.111.2", ".github/workflows/a.yml:1"},
		},
		"Netlify's production before all builds, and no other context": {
			files: map[string]string{"netlify.toml": "[build.environment]\nHUGO_VERSION = '0.111.2'\n[context.production.environment]\nHUGO_VERSION = '0.113.4'\n" +
				"[context.deploy-preview.environment]\nHUGO_VERSION = '0.115.6'\n"},
			want: Choice{"0.113.4", "netlify.toml"},
		},
		"Netlify's in the site's folder": {
			files: map[string]string{"blog/netlify.toml": "build = {environment = {HUGO_VERSION = '0.111.2'}}\n", "netlify.toml": "[build]\n"}, site: "blog", want: Choice{"0.111.2", "blog/netlify.toml"},
		},
		"the automation before the site's configuration": {
			files: map[string]string{".github/workflows/a.yml": workflow, "hugo.toml": "[module.hugoVersion]\nmax = '0.120.0'\n"}, want: Choice{"0.148.1", ".github/workflows/a.yml:3"},
		},
		"ours fits": {files: map[string]string{"hugo.toml": "[module.hugoVersion]\nmin = '0.120.0'\nmax = '0.165'\n"}, want: Choice{ours, Default}},
		"ours is too new": {
			files: map[string]string{"blog/hugo.yaml": "module: {hugoVersion: {min: 0.100.0, max: '0.120'}}\n"}, site: "blog",
			want: Choice{"0.120.0", "module.hugoVersion.max of blog/hugo.yaml"},
		},
		"ours is too old": {
			files: map[string]string{"config.json": `{"module": {"hugoVersion": {"min": "0.170.1-DEV", "extended": true}}}`},
			want:  Choice{"0.170.1", "module.hugoVersion.min of config.json"},
		},
		"the last file of a configuration wins": {
			files: map[string]string{
				"hugo.toml": "[module.hugoVersion]\nmax = '0.120.0'\n", "config/_default/module.toml": "[hugoVersion]\nmax = '0.130.0'\n",
				"config/staging/module.toml": "[hugoVersion]\nmax = '0.140.0'\n",
			},
			want: Choice{"0.130.0", "module.hugoVersion.max of config/_default/module.toml"},
		},
	} {
		got, err := Resolve(repository(c.files), orRoot(c.site), c.asked, ours)
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, c.want)
		}
		for file := range c.files {
			if !slices.ContainsFunc(Paths(orRoot(c.site)), func(path string) bool { return path == file || strings.HasPrefix(file, path+"/") }) &&
				!strings.HasPrefix(file, "config/staging") {
				t.Errorf("%s: %s is read, and is not among the paths", name, file)
			}
		}
	}
}

func orRoot(site string) string {
	if site == "" {
		return "."
	}
	return site
}

func TestWhatIsNoVersionIsNamedWithFileAndFix(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		".hugo-version": {
			map[string]string{".hugo-version": "0.148\n"},
			`.hugo-version: "0.148" is not a version of Hugo in three numbers, such as 0.148.1: correct it, or write hugo: 0.165.0 for the site in castle.yaml, or give --hugo 0.165.0`,
		},
		"one that is too old": {
			map[string]string{".hugo-version": "0.109.9\n"},
			".hugo-version asks for Hugo 0.109.9, and 0.110.0 is the oldest that castle supports, since older ones do not read hugo.toml: " +
				"write hugo: 0.110.0 for the site in castle.yaml, or give --hugo 0.110.0, or any newer one",
		},
		"a number, as Hugo reads it too": {
			map[string]string{"hugo.yaml": "module: {hugoVersion: {max: 0.120}}\n"}, "module.hugoVersion.max of hugo.yaml asks for Hugo 0.12.0, and 0.110.0 " +
				"is the oldest that castle supports, since older ones do not read hugo.toml: write hugo: 0.110.0 for the site in castle.yaml, or give --hugo 0.110.0, or any newer one",
		},
		"files that disagree": {
			map[string]string{
				".github/workflows/a.yml": "env: {HUGO_VERSION: 0.148.1}\n", "netlify.toml": "[build.environment]\nHUGO_VERSION = '0.92.0'\n",
				".github/workflows/b.yml": "env: {HUGO_VERSION: 0.148.1}\n",
			},
			"the repository names several versions of Hugo, 0.148.1 (.github/workflows/a.yml:1, .github/workflows/b.yml:1) and 0.92.0 (netlify.toml): " +
				"say which one builds this site: write hugo: 0.148.1 for the site in castle.yaml, or give --hugo 0.148.1",
		},
		"several that are none": {
			map[string]string{
				".github/workflows/a.yml": "env: {HUGO_VERSION: 0.120}\n", ".github/workflows/b.yml": "env: {HUGO_VERSION: 0.148.1}\n",
				"netlify.toml": "[build.environment]\nHUGO_VERSION = 'newest'\n",
			},
			`.github/workflows/a.yml:1: "0.120" is not a version of Hugo in three numbers, such as 0.148.1: correct it` + "\n" +
				`netlify.toml: "newest" is not a version of Hugo in three numbers, such as 0.148.1: correct it; or write hugo: 0.148.1 for the site in castle.yaml, or give --hugo 0.148.1`,
		},
		"a bound": {
			map[string]string{"hugo.toml": "[module.hugoVersion]\nmin = 'new'\n"},
			`module.hugoVersion.min of hugo.toml: "new" is no version of Hugo: correct it, or write hugo: 0.165.0 for the site in castle.yaml, or give --hugo 0.165.0`,
		},
		"a configuration": {map[string]string{"config/_default/params.json": "{"}, "config/_default/params.json: unexpected end of JSON input"},
	} {
		if _, err := Resolve(repository(c.files), ".", Choice{}, ours); err == nil || err.Error() != c.want {
			t.Errorf("%s: got\n%v\nwant\n%s", name, err, c.want)
		}
	}
}
