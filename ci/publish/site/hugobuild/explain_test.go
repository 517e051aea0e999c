package hugobuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/publish/site/hugoversion"
)

// What Hugo said is shortened from real runs.
func TestWhatHugoLacksIsSaidInOneLineWithTheWayOut(t *testing.T) {
	for name, c := range map[string]struct {
		files []string // beside the configuration
		from  string   // who asked for the version of Hugo
		said  string
		want  []string
	}{
		"a module without a network": {
			said: "Total in 104 ms\n" +
				"go: github.com/imfing/hextra@v0.12.2: reading github.com/imfing/hextra/go.mod at revision v0.12.2: git ls-remote -q origin in /cache/vcs/0c: exit status 128:\n" +
				"\tfatal: unable to access 'https://github.com/imfing/hextra/': Could not resolve host: github.com\n" +
				"ERROR failed to load modules: failed to download modules: failed to execute 'go [mod download]': go: github.com/imfing/hextra@v0.12.2: reading\n",
			want: []string{"the Hugo module github.com/imfing/hextra@v0.12.2 cannot be downloaded here (fatal: unable to access", "hugo mod vendor", "module.proxy"},
		},
		"a version that was never released": {
			said: "go: github.com/imfing/hextra@v9.9.9: invalid version: unknown revision v9.9.9\n" +
				"ERROR failed to load modules: failed to download modules: failed to execute 'go [mod download]'\n",
			want: []string{"github.com/imfing/hextra@v9.9.9 does not exist (invalid version: unknown revision v9.9.9)", "correct its version in go.mod"},
		},
		"a module that the proxy does not give": {
			said: "go: github.com/twbs/bootstrap@v5.3.6+incompatible: reading https://proxy.example/github.com/twbs/bootstrap/@v/v5.3.6+incompatible.info: 403 Forbidden\n" +
				"\tserver response: This module version is not available.\n" +
				"ERROR failed to load modules: failed to list modules: failed to execute 'go [list -m -json all]': go: github.com/twbs/bootstrap\n",
			want: []string{"the Hugo module github.com/twbs/bootstrap@v5.3.6+incompatible cannot be downloaded here (server response", "hugo mod vendor"},
		},
		"a module for a newer Go": {
			said: "go: go.mod requires go >= 1.99 (running go 1.26.4; GOTOOLCHAIN=local)\nERROR failed to load modules: failed to download modules: failed\n",
			want: []string{"go.mod asks for Go 1.99, and the Hugo image has Go 1.26.4"},
		},
		"a theme that is nowhere": {
			said: `ERROR failed to load modules: module "nonesuch" not found in "/export/work/themes/nonesuch"; either add it as a Hugo Module` + "\n",
			want: []string{"the theme nonesuch is not in the commit", "Git submodule"},
		},
		"PostCSS without package.json": {
			said: `ERROR error building site: POSTCSS: failed to transform "/a.css": binary with name "postcss" not found in PATH` + "\n",
			want: []string{"the program postcss", "npm install --save-dev postcss-cli"},
		},
		"PostCSS without a lock": {
			files: []string{"package.json"},
			said:  `ERROR error building site: POSTCSS: failed to transform "/a.css": binary with name "postcss" not found in PATH` + "\n",
			want:  []string{"the program postcss", "without a lock file of npm: run npm install and commit package-lock.json"},
		},
		"Tailwind with another's lock": {
			files: []string{"package.json", "pnpm-lock.yaml"},
			said:  `ERROR error building site: TAILWINDCSS: binary with name "tailwindcss" not found in PATH` + "\n",
			want:  []string{"the program tailwindcss", "which pnpm-lock.yaml is not"},
		},
		"a plugin of PostCSS": {
			files: []string{"package.json", "package-lock.json"},
			said:  "ERROR POSTCSS: failed to transform: Error: Cannot find module '@fullhuman/postcss-purgecss/x'\nRequire stack:\n",
			want:  []string{"the npm package @fullhuman/postcss-purgecss", "which its lock file does not have", "npm install --save-dev @fullhuman/postcss-purgecss"},
		},
		"an import of a script": {
			files: []string{"package.json"},
			said:  `ERROR error building site: JSBUILD: failed to transform "/js/main.js": "/export/work/assets/js/main.js:1:7": Could not resolve "alpinejs"` + "\n",
			want:  []string{"the npm package alpinejs", "commit package-lock.json"},
		},
		"a program that the policy refuses": {
			said: `ERROR TAILWINDCSS: access denied: "tailwindcss" is not whitelisted in policy "security.exec.allow"; the current security configuration is:` + "\n[security]\n",
			want: []string{"the site uses tailwindcss, which Hugo's policy security.exec.allow does not allow"},
		},
		"a remote resource": {
			said: `ERROR error calling GetRemote: Get "https://example.invalid/x.json": dial tcp: lookup example.invalid: no such host` + "\n",
			want: []string{"https://example.invalid/x.json", "while it is built, cannot be reached here", "commit the file"},
		},
		"a removed key": {
			said: "ERROR deprecated: The \"_build\" front matter key was deprecated in Hugo 0.145.0 and subsequently removed. Use \"build\" instead.\n" +
				"ERROR error building site: logged 1 error(s)\n",
			want: []string{`The "_build" front matter key was deprecated in Hugo 0.145.0`, "write hugo: 0.145.0 for the site in castle.yaml, or give --hugo 0.145.0"},
		},
		"two removed things": {
			said: "ERROR The \"gist\" shortcode was deprecated in v0.143.0 and removed in v0.156.0. See https://gohugo.io/shortcodes/gist.\n" +
				"ERROR The \"twitter\", \"tweet\", and \"twitter_simple\" shortcodes were deprecated in v0.142.0 and removed in hugo v0.156.0. Please use the \"x\" shortcode instead.\n" +
				"ERROR The \"gist\" shortcode was deprecated in v0.143.0 and removed in v0.156.0. See https://gohugo.io/shortcodes/gist.\n",
			want: []string{`The "gist" shortcode`, `"tweet"`, "hugo: 0.142.0", "--hugo 0.142.0"},
		},
		"a field that is gone, with castle's own Hugo": {
			from: hugoversion.Default,
			said: "ERROR render of \"/\" failed: execute of template failed: can't evaluate field IsServer in type page.Site\n",
			want: []string{"in type page.Site\nNothing in the repository names a version of Hugo.", "write hugo: VERSION for the site in castle.yaml, or give --hugo VERSION"},
		},
		"anything else": {
			said: "WARN  unrelated\nERROR the page SITE/content/a.md is wrong\nERROR and so is another\n",
			want: []string{"the page content/a.md is wrong\nand so is another"},
		},
		"no error at all": {
			said: "one\ntwo\n",
			want: []string{"one\ntwo"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			site := t.TempDir()
			for _, file := range c.files {
				if err := os.WriteFile(filepath.Join(site, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := explain(site, c.from, strings.ReplaceAll(c.said, "SITE", site)).Error()
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
			if strings.Contains(got, "\n") && !strings.Contains(c.want[0], "\n") || strings.Count(got, "gist") > 2 {
				t.Errorf("several lines:\n%s", got)
			}
		})
	}
}

func TestWhatNpmLacksIsSaidInOneLineWithTheWayOut(t *testing.T) {
	for name, c := range map[string]struct{ said, want string }{
		"no network": {
			"npm error code ENOTFOUND\nnpm error network request to https://registry.example/yargs-parser failed, reason: getaddrinfo ENOTFOUND registry.example\n",
			"the npm package yargs-parser cannot be downloaded here (getaddrinfo ENOTFOUND registry.example)"},
		"no network for an archive": {
			"npm error FetchError: request to https://registry.example/@tailwindcss/cli/-/cli-4.1.0.tgz failed, reason: connect ECONNREFUSED 127.0.0.1:9\n",
			"the npm package @tailwindcss/cli cannot be downloaded here"},
		"another lock": {
			"npm error code EUSAGE\nnpm error `npm ci` can only install packages when your package.json and package-lock.json or npm-shrinkwrap.json are in sync.\n",
			"beside it: run npm install in their folder and commit package-lock.json"},
		"a lock without a package": {
			"npm error `npm ci` can only install packages when your package.json and package-lock.json are in sync.\nnpm error\n" +
				"npm error Missing: postcss@8.4.38 from lock file\nnpm error Missing: picocolors@1.1.1 from lock file\n",
			"beside it (Missing: postcss@8.4.38 from lock file): run npm install"},
		"anything else": {"npm warn old\nnpm error code EINTEGRITY\nnpm error sha512-x integrity checksum failed\n", "npm ci: code EINTEGRITY\nsha512-x integrity checksum failed"},
	} {
		if got := explainNpm(c.said).Error(); !strings.Contains(got, c.want) {
			t.Errorf("%s: no %q in\n%s", name, c.want, got)
		}
	}
}

func TestAThemeForANewerHugoIsRefusedAndOneForAnOlderIsNot(t *testing.T) {
	warning := func(module, range_ string) string {
		return `WARN  Module "` + module + `" is not compatible with this Hugo version: ` + range_ + `; run "hugo mod graph" for more information.`
	}
	for said, want := range map[string]string{
		warning("blowfish", "Min 0.200.0 extended"):    "the theme blowfish asks for Hugo 0.200.0 or newer, and castle's images.yaml names 0.165.0",
		warning("project", "Min 0.165.1"):              "the site's configuration asks for Hugo 0.165.1 or newer",
		warning("old", "Min 0.100.0 Max 0.150.0"):      "",
		warning("old", "Max 0.150.0"):                  "",
		warning("ninth", "Min 0.99.0") + "\nWARN more": "",
	} {
		_, err := check(requirements(said), hugoversion.Choice{Version: "0.165.0", From: hugoversion.Default})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\ngot %v", said, err)
		}
	}
}
