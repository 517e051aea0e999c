package realsites

import "path/filepath"

// mageModule has the site of Mage, and in it the theme Learn with its own example site.
const mageModule = "github.com/magefile/mage"

// mage is a project's documentation in a folder of its repository, with an old theme below it and its only language in a
// folder of its own.
var mage = Site{
	Name:  "mage",
	About: "magefile.org as a folder of its repository: an old theme with jQuery, its one language below /en/",
	Path:  "site",
	write: writeMage,
}

func writeMage(t *tree) error {
	module, err := t.theme(mageModule)
	if err != nil {
		return err
	}
	if err := t.copy(filepath.Join(module, "site"), "site", "exampleSite"); err != nil {
		return err
	}
	for _, edit := range []struct{ at, old, replacement string }{
		// The search looks for its index beside the language's pages, which stand in a folder of their own.
		{"site/themes/learn/layouts/partials/search.html", ".Site.IsMultiLingual", ".Site.LanguagePrefix"},
		{"site/themes/learn/layouts", ".Site.IsMultiLingual", "hugo.IsMultilingual"},
		keepAssetNames("site/config.toml"),
	} {
		if err := t.edit(edit.at, edit.old, edit.replacement); err != nil {
			return err
		}
	}
	return nil
}

// keepAssetNames is the theme's setting that keeps the time of the build out of its pages.
func keepAssetNames(config string) struct{ at, old, replacement string } {
	return struct{ at, old, replacement string }{config, "[params]", "[params]\n  disableAssetsBusting = true"}
}

// learn is the repository of a theme, whose example site is published below a path. The theme is the repository itself.
var learn = Site{
	Name:  "learn",
	About: "the example site of the theme Learn, in the theme's repository and below a path: English and French",
	Path:  "exampleSite",
	write: writeLearn,
}

func writeLearn(t *tree) error {
	module, err := t.theme(mageModule)
	if err != nil {
		return err
	}
	if err := t.copy(filepath.Join(module, "site/themes/learn"), "."); err != nil {
		return err
	}
	// It shows what another host answers, by a function that Hugo no longer has.
	if err := t.remove("exampleSite/layouts/shortcodes/ghcontributors.html"); err != nil {
		return err
	}
	for _, edit := range []struct{ at, old, replacement string }{
		{"layouts", ".Site.IsMultiLingual", "hugo.IsMultilingual"},
		// As the theme has it, the icon is that of the host and not of the site below a path.
		{"layouts/partials/favicon.html", "href=\"/images/favicon.png\"", "href=\"{{ \"images/favicon.png\" | relURL }}\""},
		// Hugo takes a shortcode that reads .Inner for one that has to be closed.
		{"layouts/shortcodes/children.html", "{{.Inner|safeHTML}}", ""},
		{"exampleSite/content", `{{% ghcontributors "https://api.github.com/repos/matcornic/hugo-theme-learn/contributors?per_page=100" %}}`, ""},
		// The menu asks each page for its file, which the page of a term lacks.
		{"exampleSite/config.toml", `baseURL = "/"`, "baseURL = \"https://example.org/learn/\"\ndisableKinds = [\"taxonomy\"]"},
		keepAssetNames("exampleSite/config.toml"),
	} {
		if err := t.edit(edit.at, edit.old, edit.replacement); err != nil {
			return err
		}
	}
	return nil
}
