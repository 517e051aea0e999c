package realsites

import (
	_ "embed"
	"path/filepath"
)

// docsy is a documentation theme with Sass for LibSass, which needs Hugo's extended edition, and PostCSS by npm. Its modules
// are vendored; its content is its own user guide.
var docsy = Site{
	Name:    "docsy",
	About:   "Docsy as vendored Hugo modules: LibSass, PostCSS by npm, its own user guide",
	Fetches: "npm packages",
	write:   writeDocsy,
}

//go:embed npm/docsy/package-lock.json
var docsyLock string

func writeDocsy(t *tree) error {
	theme, err := t.theme("github.com/google/docsy")
	if err != nil {
		return err
	}
	// The blog's posts show pictures of other hosts.
	if err := t.copy(filepath.Join(theme, "userguide"), ".", "blog"); err != nil {
		return err
	}
	// Hugo no longer takes the render hook by the name that the theme gives it, and would fetch what draws the diagrams.
	if err := t.remove("layouts/_default/_markup/render-heading.html", "content/en/docs/adding-content/diagrams-and-formulae"); err != nil {
		return err
	}
	if err := t.vendor(
		vendored{"github.com/google/docsy", []string{"assets", "i18n", "layouts", "static", "hugo.yaml", "theme.toml"}},
		vendored{"github.com/twbs/bootstrap", []string{"scss", "dist/js"}},
		vendored{"github.com/FortAwesome/Font-Awesome", []string{"scss", "webfonts"}},
	); err != nil {
		return err
	}
	// A picture that the printed form of the page does not find, as check-blog --browser says.
	if err := t.edit("content/en/docs/adding-content/shortcodes/index.md", `src="flags/de.png"`, `src="/docs/adding-content/shortcodes/flags/de.png"`); err != nil {
		return err
	}
	for _, edit := range []struct{ old, replacement string }{
		{"theme: [docsy]\n", ""},
		{"module:\n", "module:\n  imports:\n    - path: github.com/google/docsy\n"},
		{"enableGitInfo: true\n", "enableGitInfo: true\nrefLinksErrorLevel: warning\n"},
	} {
		if err := t.edit("hugo.yaml", edit.old, edit.replacement); err != nil {
			return err
		}
	}
	return t.write(map[string]string{
		"go.mod": `module example.org/guide

go 1.22

require (
	github.com/FortAwesome/Font-Awesome v0.0.0-20240716171331-37eff7fa00de // indirect
	github.com/google/docsy v0.11.0 // indirect
	github.com/twbs/bootstrap v5.3.3+incompatible // indirect
)
`,
		"package.json": `{
  "name": "guide",
  "private": true,
  "devDependencies": {
    "autoprefixer": "10.4.21",
    "postcss": "8.5.6",
    "postcss-cli": "11.0.1"
  }
}
`,
		"package-lock.json": docsyLock,
	})
}
