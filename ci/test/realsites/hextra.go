package realsites

// hextra is a documentation theme as a Hugo module that is not vendored, so that building asks the Go module proxy.
var hextra = Site{
	Name:    "hextra",
	About:   "Hextra as a Hugo module without _vendor: search, diagrams, formulas",
	Fetches: "the theme, from the Go module proxy",
	Sample:  true,
	write:   writeHextra,
}

func writeHextra(t *tree) error {
	return t.write(map[string]string{
		"go.mod": "module example.org/docs\n\ngo 1.22\n\nrequire github.com/imfing/hextra v0.9.7 // indirect\n",
		"go.sum": `github.com/imfing/hextra v0.9.7 h1:Zg5n24us36Bn/S/5mEUPkRW6uwE6vHHEqWSgN0bPXaM=
github.com/imfing/hextra v0.9.7/go.mod h1:cEfel3lU/bSx7lTE/+uuR4GJaphyOyiwNR3PTqFTXpI=
`,
		"hugo.yaml": `baseURL: https://example.org/
title: Documentation
enableRobotsTXT: true
module:
  imports:
    - path: github.com/imfing/hextra
markup:
  goldmark: {renderer: {unsafe: true}}
  highlight: {noClasses: false}
params:
  search: {enable: true, type: flexsearch, flexsearch: {index: content}}
  navbar: {displayTitle: true}
  theme: {default: system, displayToggle: true}
menu:
  main:
    - {name: Documentation, pageRef: /docs, weight: 1}
    - {name: Search, weight: 2, params: {type: search}}
`,
		// The theme's own feed asks for a field that Hugo no longer has.
		"layouts/_default/list.rss.xml": hextraFeed,
		"layouts/rss.xml":               hextraFeed,

		"content/_index.md":      "---\ntitle: Documentation\nlayout: hextra-home\n---\n{{< hextra/hero-headline >}}Documentation{{< /hextra/hero-headline >}}\n",
		"content/docs/_index.md": "---\ntitle: Documentation\n---\n{{< cards >}}\n{{< card link=\"diagrams\" title=\"Diagrams\" icon=\"book-open\" >}}\n{{< /cards >}}\n",
		"content/docs/diagrams.md": "---\ntitle: Diagrams\n---\n## A graph\n\n```mermaid\ngraph TD; A-->B; B-->C;\n```\n\n" +
			"## Tabs\n\n{{< tabs items=\"One,Two\" >}}\n{{< tab >}}First.{{< /tab >}}\n{{< tab >}}Second.{{< /tab >}}\n{{< /tabs >}}\n",
		"content/docs/formulas.md": "---\ntitle: Formulas\nmath: true\n---\n## Euler\n\n$$e^{i\\pi} + 1 = 0$$\n\n" +
			"{{< callout type=\"info\" >}}\nA note.\n{{< /callout >}}\n",
		"content/docs/code.md": "---\ntitle: Code\n---\n## Go\n\n```go {filename=\"main.go\",linenos=table}\npackage main\n\nfunc main() {}\n```\n",
		"content/about.md":     "---\ntitle: About\ntoc: false\n---\nA page of its own.\n",
	})
}

const hextraFeed = `{{- printf "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>" | safeHTML }}
<rss version="2.0"><channel><title>{{ site.Title }}</title><link>{{ .Permalink }}</link><description>{{ site.Title }}</description>
{{ range first 20 site.RegularPages }}<item><title>{{ .Title }}</title><link>{{ .Permalink }}</link><guid>{{ .Permalink }}</guid></item>{{ end }}
</channel></rss>
`
