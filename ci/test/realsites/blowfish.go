package realsites

import (
	"path/filepath"
	"regexp"
)

// blowfish is a heavy, widely used theme as a submodule, with the greater part of its own documentation as content, and what
// the blog added that first showed why real sites are needed: web fonts, a comments widget, inline scripts and styles, and
// tags that are spelt in several ways.
var blowfish = Site{
	Name:   "blowfish",
	About:  "Blowfish as a submodule, three languages, web fonts, a comments widget, ambiguous tags",
	Sample: true,
	write:  writeBlowfish,
}

// A page or a file of configuration in a language that is left out, to keep the site small.
var otherLanguage = regexp.MustCompile(`\.(de|es|fr|pt-br|pt-pt|zh-cn|zh-CN|zh-Hans)\.(md|toml)$`)

func writeBlowfish(t *tree) error {
	theme, err := t.theme("github.com/nunocoracao/blowfish/v2")
	if err != nil {
		return err
	}
	if err := t.submodule(theme, "themes/blowfish"); err != nil {
		return err
	}
	if err := t.copy(filepath.Join(theme, "exampleSite"), "."); err != nil {
		return err
	}
	// These show pictures and repositories of other hosts, which Hugo would fetch.
	if err := t.remove("content/docs/shortcodes", "content/guides/202310-blowfish-tutorial", "content/samples/rich-content", "content/users", "content/examples"); err != nil {
		return err
	}
	for _, folder := range []string{"content", "config"} {
		if err := t.removeMatching(folder, otherLanguage); err != nil {
			return err
		}
	}
	for _, edit := range []struct{ folder, old, replacement string }{
		{"config/_default", `baseURL = "https://localhost:1313"`, "baseURL = \"https://example.org/\"\nrefLinksErrorLevel = \"warning\""},
		{"config/_default", `googleAnalytics = "G-PEDMYR1V0K"`, ""},
		{"config/_default", "[article]", "[article]\n  showComments = true"},
	} {
		if err := t.edit(edit.folder, edit.old, edit.replacement); err != nil {
			return err
		}
	}
	return t.write(map[string]string{
		"layouts/partials/extend-head.html": `<link rel="preconnect" href="https://fonts.googleapis.com">
<link rel="stylesheet" href="https://fonts.googleapis.com/css2?family=Inter:wght@400;700&display=swap">
<style>:root { --castle-accent: teal }</style>
<script>document.documentElement.dataset.ready = "yes"</script>
`,
		"layouts/partials/comments.html": `<script src="https://giscus.app/client.js" data-repo="example/example" data-repo-id="R_1"
  data-category="Announcements" data-category-id="C_1" data-mapping="pathname" data-theme="preferred_color_scheme"
  crossorigin="anonymous" async></script>
`,
		"content/posts/_index.md":    "---\ntitle: Posts\n---\n",
		"content/posts/_index.it.md": "---\ntitle: Articoli\n---\n",
		"content/posts/one.md":       article("One", []string{"AI", "context management", "C++"}, "A text with `code`.\n\n```go\nfunc main() {}\n```"),
		"content/posts/two.md":       article("Two", []string{"ai", "context-management"}, "A second text, about the [first](../one/)."),
		"content/posts/three.md":     article("Three", []string{"Ai", "Context Management"}, "A third text."),
		"content/posts/one.it.md":    article("Uno", []string{"AI", "gestione del contesto"}, "Un testo."),
		"content/posts/two.it.md":    article("Due", []string{"ai"}, "Un secondo testo."),
	})
}
