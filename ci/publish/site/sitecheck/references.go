package sitecheck

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"strings"

	"tazlab.net/castle/ci/base/findings"

	"tazlab.net/castle/ci/publish/site/builtsite"
	"tazlab.net/castle/ci/publish/site/sitecheck/rules"
	"tazlab.net/castle/ci/publish/site/webref"
)

// source is where a reference stands; element is empty in a stylesheet, attribute in the text of an XML element.
type source struct {
	element   string
	attribute string
	line      int
}

func (s source) quote(value string) string {
	value = findings.Cut(value, findings.WidestQuoted)
	switch {
	case s.element == "" && s.attribute == "url":
		return fmt.Sprintf("url(%q)", value)
	case s.element == "":
		return fmt.Sprintf("%s %q", s.attribute, value)
	case s.attribute == "":
		return fmt.Sprintf("<%s>%s</%s>", s.element, value, s.element)
	default:
		return fmt.Sprintf("<%s %s=%q>", s.element, s.attribute, value)
	}
}

// kind is the reference without its value, for example <img src>.
func (s source) kind() string {
	switch {
	case s.element == "" && s.attribute == "url":
		return "url()"
	case s.element == "":
		return s.attribute
	default:
		return "<" + strings.TrimSpace(s.element+" "+s.attribute) + ">"
	}
}

// references judges the references of one document.
type references struct {
	resolver *resolver
	document *document
	base     *url.URL // what relative references are relative to
	anywhere bool     // the page is an error page, shown in place of any address
}

func newReferences(resolver *resolver, document *document) *references {
	return &references{
		resolver: resolver,
		document: document,
		base:     builtsite.FileOf(resolver.site.Base, document.file),
		anywhere: path.Base(document.file) == "404.html",
	}
}

// follow judges one reference and returns where it leads.
func (r *references) follow(from source, value []byte, how webref.Kind) destination {
	if how == webref.ImageSet {
		for _, candidate := range webref.Srcset(value) {
			r.follow(from, candidate, webref.Image)
		}
		return destination{}
	}
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		if how != webref.Link && from.element != "form" {
			r.document.add(from.line, rules.BrokenLink, from.kind()+" without a file", "%s names no file: fill it in or leave it out", from.quote(""))
		}
		return destination{}
	}
	target := r.resolver.resolve(r.base, value)
	switch {
	case target.host != "":
		if how != webref.Link {
			r.document.add(from.line, rules.ForeignRequest, target.host+" by "+from.kind(), "%s makes the browser ask %s: serve the file from this site",
				from.quote(string(value)), target.host)
		}
		return target
	case target.rule != "":
		r.document.links++
		r.document.add(from.line, target.rule, target.cause, "%s %s", from.quote(string(value)), target.message)
		return target
	case target.file == "":
		return target
	}
	r.document.links++
	if r.anywhere && value[0] != '/' && value[0] != '#' && !bytes.Contains(value, []byte("://")) {
		r.document.add(from.line, rules.BrokenLink, string(value),
			"%s is relative, but an error page is shown at any address: begin it with a slash", from.quote(string(value)))
	}
	if target.redirected && how == webref.Link {
		r.document.add(from.line, rules.RedirectedLink, target.cause, "%s lacks its last slash and costs a redirect: add it",
			from.quote(string(value)))
	}
	if target.fragment != "" && how == webref.Link {
		r.document.anchors = append(r.document.anchors, anchor{
			file: target.file, fragment: target.fragment, quoted: from.quote(string(value)), line: from.line,
		})
	}
	return target
}

func readStylesheet(resolver *resolver, document *document, content []byte) {
	references := newReferences(resolver, document)
	references.css(content, 1)
}

// css judges the references of a stylesheet, a style element or a style attribute that begins on the given line.
func (r *references) css(text []byte, line int) {
	for _, reference := range webref.Stylesheet(text) {
		if strings.HasPrefix(reference.URL, "#") {
			continue // a filter or mask of the page itself
		}
		from := "url"
		if reference.Use == webref.Import {
			from = "@import"
		}
		r.follow(source{attribute: from, line: line + reference.Line}, []byte(reference.URL), webref.Image)
	}
}
