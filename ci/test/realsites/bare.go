package realsites

// bare is a site without a theme: a home page, a list and an article with a tag. styles is the template that links to its
// stylesheet, body the body of every page with a block named main, list what stands in that block.
func bare(title, tag, styles, body, list string) map[string]string {
	return map[string]string{
		"layouts/baseof.html": `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ .Title }}</title>
` + styles + `
</head>
` + body + `
</html>
`,
		"layouts/all.html":        `{{ define "main" }}` + list + `{{ end }}`,
		"content/_index.md":       "---\ntitle: " + title + "\n---\n",
		"content/posts/_index.md": "---\ntitle: Posts\n---\n",
		"content/posts/one.md":    article("One", []string{tag}, "A text."),
	}
}
