package sitecheck

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"tazlab.net/castle/ci/base/findings"

	"tazlab.net/castle/ci/publish/site/sitecheck/rules"
)

// Options say what to check.
type Options struct {
	// Dir is the built site, for example Hugo's public folder.
	Dir string
	// BaseURL is the address the site is served at, for example https://example.org/blog/. Absolute links to it are checked
	// like relative ones. Empty: what the site says of itself, see builtsite.AddressOf; where it says nothing, every absolute link is foreign.
	BaseURL string
	// Languages are those every page must exist in, as in hreflang. Empty: those the pages' own alternate links name.
	Languages []string
	// Strict says that the site is served with a Content-Security-Policy that refuses other hosts: what a page asks of them is
	// an error then, since it will be missing.
	Strict bool
	// Ignore leaves findings out: "rule", or "rule:pattern" for those whose cause or file the pattern matches as a whole, both as the
	// report shows them. In a pattern * stands for any characters, slashes too, and ? for one.
	Ignore []string
	// Baseline are findings that are known: only what it does not hold is reported.
	Baseline findings.Baseline
}

// Check reads the site and returns all its findings at once. An error means that the site could not be read, or that the
// options make no sense; findings are no error.
func Check(ctx context.Context, options Options) (Report, error) {
	ignored, err := findings.ParseIgnore(options.Ignore, rules.Names())
	if err != nil {
		return Report{}, err
	}
	site, err := openSite(options.Dir, options.BaseURL)
	if err != nil {
		return Report{}, err
	}

	readable := slices.DeleteFunc(slices.Clone(site.Files), func(file string) bool { return readerOf(file) == nil })
	checked := make([]*document, len(readable))
	resolvers := sync.Pool{New: func() any { return newResolver(site) }}
	err = site.Read(ctx, readable, func(i int, content []byte) error {
		resolver := resolvers.Get().(*resolver)
		defer resolvers.Put(resolver)
		checked[i] = &document{file: readable[i]}
		readerOf(readable[i])(resolver, checked[i], content)
		return nil
	})
	if err != nil {
		return Report{}, err
	}

	report := Report{}
	var found []findings.Finding
	documents := make(map[string]*document)
	for _, document := range checked {
		documents[document.file] = document
		if document.isPage {
			report.Pages++
		}
		report.Links += document.links
	}
	for _, document := range checked {
		document.checkAnchors(documents)
	}
	checkTranslations(site, checked, documents, options.Languages)
	for _, document := range checked {
		found = append(found, document.findings...)
	}
	if !site.files["index.html"] {
		found = append(found, findings.Finding{File: "index.html", Line: 1, Rule: rules.NoIndex, Cause: "/",
			Message: "the site has no home page: build it, or name the folder that holds index.html"})
	}
	report.Take(found, rules.Severity(options.Strict), ignored, options.Baseline)
	return report, nil
}

// document is what a file leaves behind once it has been read.
type document struct {
	file     string
	isPage   bool
	links    int
	findings []findings.Finding

	// Facts of HTML pages only.
	language   string
	ids        map[string]int // line of each id
	anchors    []anchor
	alternates []alternate
	redirects  bool // an alias: it only sends the visitor on
}

// anchor is a reference to a place inside a page.
type anchor struct {
	file     string // page it leads to
	fragment string // percent-decoded
	quoted   string // the reference as the author wrote it
	line     int
}

// add takes a finding down. The cause is what findings that are mended together have in common, whatever their page.
func (d *document) add(line int, rule, cause, format string, arguments ...any) {
	d.findings = append(d.findings, findings.Finding{File: d.file, Line: line, Rule: rule, Cause: strings.Join(strings.Fields(cause), " "),
		Message: fmt.Sprintf(format, arguments...)})
}

func (d *document) checkAnchors(documents map[string]*document) {
	for _, anchor := range d.anchors {
		target, read := documents[anchor.file]
		if !read || !target.isPage || strings.EqualFold(anchor.fragment, "top") {
			continue
		}
		if _, exists := target.ids[anchor.fragment]; !exists {
			d.add(anchor.line, rules.MissingAnchor, "/"+anchor.file+"#"+anchor.fragment, "%s: nothing in %s has the id %q; correct the link or add the id",
				anchor.quoted, anchor.file, anchor.fragment)
		}
	}
}

// readerOf is what reads a file of this name; nil where such a file holds nothing to check.
func readerOf(file string) func(*resolver, *document, []byte) {
	switch strings.ToLower(path.Ext(file)) {
	case ".html", ".htm":
		return readPage
	case ".css":
		return readStylesheet
	case ".xml", ".rss", ".atom", ".svg":
		return readXML
	}
	return nil
}
