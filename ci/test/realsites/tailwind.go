package realsites

import _ "embed"

// tailwind is a site without a theme whose styles are made by Tailwind CSS, by npm.
var tailwind = Site{
	Name:    "tailwind",
	About:   "Tailwind CSS 4 by npm",
	Fetches: "npm packages",
	write:   writeTailwind,
}

//go:embed npm/tailwind/package-lock.json
var tailwindLock string

func writeTailwind(t *tree) error {
	if err := t.write(bare("Tailwind", "css", `{{ with (templates.Defer (dict "key" "global")) }}
{{ with resources.Get "css/main.css" | css.TailwindCSS (dict "minify" true) | fingerprint }}
<link rel="stylesheet" href="{{ .RelPermalink }}" integrity="{{ .Data.Integrity }}">
{{ end }}
{{ end }}`,
		`<body class="bg-white text-gray-900"><main class="mx-auto max-w-prose p-4">{{ block "main" . }}{{ .Content }}{{ end }}</main></body>`,
		`<h1 class="text-3xl font-bold">{{ .Title }}</h1>{{ .Content }}{{ range .Pages }}<p><a class="underline" href="{{ .RelPermalink }}">{{ .Title }}</a></p>{{ end }}`)); err != nil {
		return err
	}
	return t.write(map[string]string{
		"package.json": `{
  "name": "tailwind",
  "private": true,
  "devDependencies": {
    "@tailwindcss/cli": "4.1.17",
    "tailwindcss": "4.1.17"
  }
}
`,
		"package-lock.json": tailwindLock,
		// As Hugo's documentation of css.TailwindCSS has it.
		"hugo.toml": `baseURL = "https://example.org/"
title = "Tailwind"
locale = "en"
[security.exec]
allow = ["^(dart-)?sass$", "^go$", "^git$", "^node$", "^tailwindcss$"]
[build.buildStats]
enable = true
[[build.cachebusters]]
source = "assets/notwatching/hugo_stats\\.json"
target = "css"
[[module.mounts]]
source = "assets"
target = "assets"
[[module.mounts]]
disableWatch = true
source = "hugo_stats.json"
target = "assets/notwatching/hugo_stats.json"
`,
		"assets/css/main.css": "@import \"tailwindcss\";\n@source \"hugo_stats.json\";\n",
	})
}
