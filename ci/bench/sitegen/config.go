package sitegen

import "fmt"

// config returns hugo.yaml. Like the blog's, it publishes what is there, whatever the clock says, and makes a feed of
// the front page only.
func config(theme string) []byte {
	themeLine := ""
	if theme != "" {
		themeLine = fmt.Sprintf("theme: %q\n", theme)
	}
	return []byte(`baseURL: https://example.org/
title: Benchmark
` + themeLine + `locale: en-GB
buildFuture: true
buildExpired: true
enableGitInfo: false
disableHugoGeneratorInject: true
taxonomies:
  tag: tags
outputs:
  home: [html, rss]
  section: [html]
  taxonomy: [html]
  term: [html]
pagination:
  disableAliases: true
  pagerSize: 50
services:
  rss:
    limit: 20
markup:
  highlight:
    noClasses: false
menus:
  main:
    - { name: Tags, pageRef: /tags, weight: 1 }
`)
}

func sectionPage(name string) []byte {
	return fmt.Appendf(nil, "---\ntitle: %q\ndescription: \"All pages about %s.\"\n---\n", capitalize(name), name)
}
