package realsites

import "path/filepath"

// sass is a site without a theme that compiles Bootstrap by Dart Sass, as Hugo's documentation recommends now.
var sass = Site{
	Name:  "sass",
	About: "Bootstrap compiled by Dart Sass, vendored",
	write: writeSass,
}

func writeSass(t *tree) error {
	if err := t.vendor(vendored{"github.com/twbs/bootstrap", []string{"scss", "dist/js"}}); err != nil {
		return err
	}
	// A module's zip has no folder of the name vendor. Docsy brings what Bootstrap loses by that.
	docsy, err := t.theme("github.com/google/docsy")
	if err != nil {
		return err
	}
	if err := t.copy(filepath.Join(docsy, "assets/_vendor/bootstrap/scss"), "assets/scss/bootstrap/vendor"); err != nil {
		return err
	}
	if err := t.write(bare("Sass", "sass", `{{ with resources.Get "scss/main.scss" | css.Sass (dict "transpiler" "dartsass" "outputStyle" "compressed" "silenceDeprecations" (slice "color-functions" "mixed-decls")) | fingerprint }}
<link rel="stylesheet" href="{{ .RelPermalink }}" integrity="{{ .Data.Integrity }}">
{{ end }}`,
		`<body>
<nav class="navbar"><div class="container"><a class="navbar-brand" href="/">Sass</a>
<button class="navbar-toggler" type="button" data-bs-toggle="collapse" data-bs-target="#menu" aria-label="Menu"><span class="navbar-toggler-icon"></span></button>
<div class="collapse navbar-collapse" id="menu"><a class="nav-link" href="/posts/">Posts</a></div></div></nav>
<main class="container">{{ block "main" . }}{{ .Content }}{{ end }}</main>
{{ with resources.Get "js/bootstrap/bootstrap.bundle.min.js" | fingerprint }}<script src="{{ .RelPermalink }}" integrity="{{ .Data.Integrity }}"></script>{{ end }}
</body>`,
		`<h1>{{ .Title }}</h1><p class="lead" style="max-width: 60ch">{{ .Content }}</p>{{ range .Pages }}<p><a href="{{ .RelPermalink }}">{{ .Title }}</a></p>{{ end }}`)); err != nil {
		return err
	}
	return t.write(map[string]string{
		"go.mod": "module example.org/sass\n\ngo 1.22\n\nrequire github.com/twbs/bootstrap v5.3.3+incompatible // indirect\n",
		"hugo.toml": `baseURL = "https://example.org/"
title = "Sass"
locale = "en"
[[module.imports]]
path = "github.com/twbs/bootstrap"
[[module.imports.mounts]]
source = "scss"
target = "assets/scss/bootstrap"
[[module.imports.mounts]]
source = "dist/js"
target = "assets/js/bootstrap"
`,
		"assets/scss/main.scss": "@use \"bootstrap/bootstrap\";\n.lead { color: bootstrap.$teal; }\n",
	})
}
