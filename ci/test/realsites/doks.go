package realsites

import (
	_ "embed"
	"fmt"
	"strings"
)

// doks is a documentation site whose theme comes by npm as well: its parts are mounted from node_modules, its styles go
// through PostCSS and PurgeCSS, and its scripts are bundled from packages.
var doks = Site{
	Name:    "doks",
	About:   "Doks by npm: a theme mounted from node_modules, PostCSS with PurgeCSS, js.Build",
	Fetches: "npm packages",
	write:   writeDoks,
}

//go:embed npm/doks/package-lock.json
var doksLock string

// doksMounts are the folders that the theme's packages bring, by Hugo's name of the folder.
var doksMounts = []struct {
	target   string
	packages []string
}{
	{"assets", []string{"@thulite/core", "@thulite/doks-core", "@thulite/images"}},
	{"data", []string{"@thulite/doks-core"}},
	{"i18n", []string{"@thulite/doks-core"}},
	{"layouts", []string{"@thulite/core", "@thulite/seo", "@thulite/images", "@thulite/doks-core", "@thulite/inline-svg"}},
	{"static", []string{"@thulite/doks-core"}},
}

func doksModule() string {
	var text strings.Builder
	mount := func(source, target string) {
		fmt.Fprintf(&text, "[[mounts]]\nsource = %q\ntarget = %q\n", source, target)
	}
	mount("content", "content")
	mount("node_modules/@tabler/icons/icons", "assets/svgs/tabler-icons")
	for _, folder := range doksMounts {
		mount(folder.target, folder.target)
		for _, name := range folder.packages {
			mount("node_modules/"+name+"/"+folder.target, folder.target)
		}
	}
	return text.String()
}

func writeDoks(t *tree) error {
	return t.write(map[string]string{
		"package.json": `{
  "name": "doks",
  "private": true,
  "devDependencies": {
    "@fullhuman/postcss-purgecss": "8.0.0",
    "@tabler/icons": "3.36.0",
    "@thulite/core": "1.5.9",
    "@thulite/doks-core": "1.9.3",
    "@thulite/images": "3.3.4",
    "@thulite/inline-svg": "1.2.1",
    "@thulite/seo": "2.4.2",
    "autoprefixer": "10.4.21",
    "postcss": "8.5.6",
    "postcss-cli": "11.0.1"
  }
}
`,
		"package-lock.json": doksLock,
		".gitignore":        "node_modules/\npublic/\nresources/\nhugo_stats.json\n",
		"config/postcss.config.js": `import autoprefixer from "autoprefixer";
import purgecss from "@fullhuman/postcss-purgecss";

export default {
  plugins: [
    autoprefixer(),
    purgecss({
      content: ["./hugo_stats.json"],
      defaultExtractor: (content) => {
        const { tags, classes, ids } = JSON.parse(content).htmlElements;
        return [...(tags ?? []), ...(classes ?? []), ...(ids ?? [])];
      },
      dynamicAttributes: ["aria-expanded", "data-bs-theme", "data-pane", "data-toggle-tab", "id", "type"],
      safelist: ["active", "disabled", "hidden", "show", "modal-backdrop", "offcanvas-backdrop", "selected"],
    }),
  ],
};
`,
		"config/_default/hugo.toml": `baseURL = "https://example.org/"
title = "Doks"
locale = "en-US"
disableKinds = ["taxonomy", "term"]
enableRobotsTXT = true
[build.buildStats]
enable = true
[outputs]
home = ["HTML", "RSS", "searchIndex"]
section = ["HTML", "RSS", "SITEMAP"]
[outputFormats.searchIndex]
mediaType = "application/json"
baseName = "search-index"
isPlainText = true
notAlternative = true
[outputFormats.SITEMAP]
mediaType = "application/xml"
baseName = "sitemap"
isHTML = false
isPlainText = true
noUgly = true
[markup.goldmark.renderer]
unsafe = true
[markup.highlight]
noClasses = false
`,
		"config/_default/module.toml": doksModule(),
		"config/_default/menus.toml":  "[[main]]\nname = \"Docs\"\nurl = \"/docs/\"\nweight = 10\n",
		"config/_default/params.toml": `title = "Doks"
description = "Documentation"
mainSections = ["docs"]
[doks]
colorMode = "auto"
colorModeToggler = true
flexSearch = true
searchExclKinds = []
searchExclTypes = []
showSearch = []
searchLimit = 99
containerBreakpoint = "lg"
navbarSticky = true
sectionNav = ["docs"]
scrollSpy = true
breadcrumbTrail = true
bootstrapJavascript = true
headlineHash = true
[seo.schemas]
type = "Organization"
`,
		// What the theme leaves to the site, and asks for.
		"assets/js/custom.js":                                "",
		"assets/scss/common/_custom.scss":                    "",
		"assets/scss/common/_variables-custom.scss":          "",
		"layouts/_partials/footer/script-footer-custom.html": "",
		"layouts/_partials/head/custom-head.html":            "",
		"layouts/_partials/head/script-header.html":          "",

		"content/_index.md":             "---\ntitle: Doks\nlead: Documentation\n---\n",
		"content/docs/_index.md":        "---\ntitle: Docs\n---\n",
		"content/docs/guides/_index.md": "---\ntitle: Guides\n---\n",
		// The home page of the theme links to this page.
		"content/docs/guides/example-guide.md": "---\ntitle: Example\ndate: 2025-03-04\n---\n## A heading\n\n" +
			"{{< callout context=\"note\" title=\"Note\" icon=\"outline/info-circle\" >}}\nA note.\n{{< /callout >}}\n\n" +
			"```go\npackage main\n```\n\n" +
			"{{< tabs \"shell\" >}}\n{{< tab \"One\" >}}First.{{< /tab >}}\n{{< tab \"Two\" >}}Second.{{< /tab >}}\n{{< /tabs >}}\n",
	})
}
