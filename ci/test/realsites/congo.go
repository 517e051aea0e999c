package realsites

import "path/filepath"

// congo is a theme in a folder of the site, with its example content in English and Japanese.
var congo = Site{
	Name:   "congo",
	About:  "Congo as a folder of the site, English and Japanese, its own example content",
	Varies: "the theme shuffles digits for the ids of charts",
	write:  writeCongo,
}

func writeCongo(t *tree) error {
	theme, err := t.theme("github.com/jpanther/congo/v2")
	if err != nil {
		return err
	}
	if err := t.copy(theme, "themes/congo", "exampleSite"); err != nil {
		return err
	}
	if err := t.copy(filepath.Join(theme, "exampleSite"), "."); err != nil {
		return err
	}
	// version-2 has a page in HTML, which Hugo's security policy refuses; rich-content asks other hosts.
	if err := t.remove("content/docs/version-2", "content/samples/rich-content"); err != nil {
		return err
	}
	for _, folder := range []string{"content", "config"} {
		if err := t.removeMatching(folder, otherLanguage); err != nil {
			return err
		}
	}
	// The front matter key of Hugo before 0.145, which later versions refuse.
	if err := t.edit("content", "_build:", "build:"); err != nil {
		return err
	}
	return t.write(map[string]string{
		// The theme's own asks for a field that Hugo no longer has.
		"layouts/_partials/functions/warnings.html": "",
	})
}
