package hugobuild

import "testing"

const (
	layouts = `-- layouts/home.html --
home
-- layouts/page.html --
page
-- layouts/404.html --
not here
-- content/about.md --
`
	inLanguages = `-- config/_default/languages.toml --
[en]
weight = 1
[de]
weight = 2
`
)

func TestASiteWithoutAPageAtItsRootIsRefusedByTheSettingsName(t *testing.T) {
	for title, c := range map[string]struct {
		files string
		wants []string
	}{
		"no redirect": {
			"-- hugo.toml --\ndefaultContentLanguage = 'de'\ndefaultContentLanguageInSubdir = true\ndisableDefaultLanguageRedirect = true\n",
			[]string{"disableDefaultLanguageRedirect", "redirects / to /de/", "static/index.html"},
		},
		"no redirect, in a folder of the configuration": {
			"-- hugo.toml --\n-- config/production/hugo.yaml --\ndefaultContentLanguageInSubdir: true\ndisableDefaultLanguageRedirect: true\n",
			[]string{"disableDefaultLanguageRedirect", "redirects / to /en/"},
		},
		"several hosts": {
			"-- hugo.toml --\n[languages.en]\nbaseURL = 'https://en.example/'\n[languages.de]\nbaseURL = 'https://de.example/'\n",
			[]string{"languages.en.baseURL and languages.de.baseURL", "disableLanguages"},
		},
		"one host, and the other language at the site's": {
			"-- hugo.toml --\nbaseURL = 'https://castle.dev/'\n-- config/_default/languages.de.toml --\nbaseURL = 'https://de.castle.dev/'\n",
			[]string{"languages.de.baseURL", "disableLanguages"},
		},
		"hosts of the languages' file, for production": {
			"-- hugo.toml --\n-- config/production/languages.yaml --\nen: {baseurl: https://en.castle.dev/}\nde: {baseURL: https://de.castle.dev/}\n",
			[]string{"languages.en.baseURL and languages.de.baseURL"},
		},
		"no home": {"-- hugo.toml --\ndisableKinds = ['home']\n", []string{"disableKinds"}},
		"a home of data": {
			"-- hugo.toml --\n[outputs]\nhome = ['json']\n-- layouts/home.json --\n{}\n", []string{"outputs.home", "json"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			opts := workshop(t, c.files+layouts)
			if title != "no home" && title != "a home of data" {
				write(t, opts.Site, inLanguages)
			}
			opts.failsWith(t, c.wants...)
		})
	}
}

func TestASiteWithAPageOfItsOwnAtItsRootNeedsNoRedirect(t *testing.T) {
	opts := workshop(t, "-- hugo.toml --\nbaseURL = 'https://castle.dev/'\ndefaultContentLanguageInSubdir = true\ndisableDefaultLanguageRedirect = true\n"+
		"-- static/index.html --\nchoose\n"+layouts+inLanguages)
	if err := opts.build(t); err != nil {
		t.Fatal(err)
	}
	if got := opts.page(t); got != "choose" {
		t.Errorf("got %q", got)
	}
}
