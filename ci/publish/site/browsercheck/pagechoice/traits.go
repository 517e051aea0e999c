package pagechoice

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"tazlab.net/castle/ci/publish/site/builtsite"
	"tazlab.net/castle/ci/publish/site/webref"
)

// traits are what of a page matters to headers and layout.
type traits struct {
	file    string // index.html, posts/hello/index.html
	sendsOn bool   // an alias, which only redirects
	// details are by sort: script → /js/main.*.js, inline script → a hash of its words. Fingerprints and languages are left
	// out, so that they are the same on all pages of a template.
	details map[string]map[string]bool
	// layouts are hashes of the page's skeleton, from the finest to the coarsest.
	layouts [layoutLevels]string
}

// A skeleton is followed to this depth at most. The levels have 8 to 1 with classes, then 8 to 1 without.
const (
	maxDepth     = 8
	layoutLevels = 2 * maxDepth
)

// structural are the elements that templates are built of; what Markdown makes is content. A div may be either, and depth
// decides.
var structural = map[atom.Atom]bool{
	atom.Header: true, atom.Nav: true, atom.Main: true, atom.Article: true, atom.Section: true, atom.Aside: true, atom.Footer: true,
	atom.Div: true, atom.Form: true, atom.Dialog: true, atom.Iframe: true, atom.Video: true, atom.Audio: true, atom.Object: true,
	atom.Embed: true, atom.Canvas: true,
}

// path is where the server has the file.
func (t *traits) path() string {
	return builtsite.FileOf(&url.URL{Path: "/"}, t.file).EscapedPath()
}

func readTraits(site *url.URL, file string, data []byte) (*traits, error) {
	root, err := html.Parse(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	page := &traits{file: file, details: map[string]map[string]bool{}}
	reader := traitReader{traits: page, site: site, language: regexp.MustCompile(`^\z.`)} // nothing, until the page says its language
	for node := range root.Descendants() {
		if node.Type == html.ElementNode {
			reader.element(node)
		}
	}
	for level := range layoutLevels {
		sum := sha256.Sum256([]byte(reader.skeleton(root, maxDepth-level%maxDepth, level < maxDepth)))
		page.layouts[level] = hex.EncodeToString(sum[:6])
	}
	return page, nil
}

// traitReader knows what the elements before it said of the page.
type traitReader struct {
	*traits
	site     *url.URL
	language *regexp.Regexp
}

func (r *traitReader) add(sort, detail string) {
	if r.details[sort] == nil {
		r.details[sort] = map[string]bool{}
	}
	r.details[sort][detail] = true
}

func (r *traitReader) element(node *html.Node) {
	attributes := map[string]string{}
	for _, attribute := range node.Attr {
		attributes[attribute.Key] = strings.TrimSpace(attribute.Val)
		if strings.HasPrefix(attribute.Key, "on") {
			r.add("handler", attribute.Key)
		}
	}
	if style := attributes["style"]; style != "" {
		r.add("style attribute", "")
		r.hosts("style", style)
	}
	switch node.DataAtom {
	case atom.Html:
		if tag := attributes["lang"]; tag != "" {
			r.language = languageTokens(tag)
		}
	case atom.Script:
		if source := attributes["src"]; source != "" {
			r.add("script", r.source(source))
		} else if webref.IsScript(attributes["type"]) {
			r.add("inline script", wordsOf(text(node)))
		}
	case atom.Style:
		r.add("inline style", wordsOf(text(node)))
		r.hosts("style", text(node))
	case atom.Link:
		r.link(attributes)
	case atom.Meta:
		if strings.EqualFold(attributes["http-equiv"], "refresh") {
			r.sendsOn = true
		}
	case atom.Img, atom.Iframe, atom.Video, atom.Audio, atom.Source, atom.Track, atom.Embed, atom.Object:
		for _, name := range []string{"src", "data", "poster"} {
			r.foreign(node.Data, attributes[name])
		}
		for _, candidate := range webref.Srcset([]byte(attributes["srcset"])) {
			r.foreign(node.Data, string(candidate))
		}
	}
}

func (r *traitReader) link(attributes map[string]string) {
	address := attributes["href"]
	for relation := range strings.FieldsSeq(strings.ToLower(attributes["rel"])) {
		switch relation {
		case "stylesheet":
			r.add("stylesheet", r.source(address))
		case "preload", "modulepreload", "prefetch", "manifest", "icon", "apple-touch-icon":
			r.foreign(relation, address)
		}
	}
}

// foreign notes the host of an address that names one; data: and blob: count as hosts, as they do in a policy.
func (r *traitReader) foreign(sort, address string) {
	at, err := url.Parse(address)
	switch {
	case err != nil || address == "":
	case at.Host != "" && at.Host != r.site.Host:
		r.add(sort, "from "+at.Host)
	case at.Opaque != "":
		r.add(sort, "from "+at.Scheme+":")
	case sort != "img":
		r.add(sort, "")
	}
}

// hosts notes those that a style loads from.
func (r *traitReader) hosts(sort, css string) {
	for _, reference := range webref.Stylesheet([]byte(css)) {
		if at, err := url.Parse(reference.URL); err == nil && at.Host != "" && at.Host != r.site.Host {
			r.add(sort, "from "+at.Host)
		}
	}
}

// source is the address of a script or style sheet, or the host of a foreign one, as all pages of a template have it.
func (r *traitReader) source(address string) string {
	at, err := url.Parse(address)
	switch {
	case err != nil:
		return "of no address"
	case at.Host != "" && at.Host != r.site.Host:
		return "from " + at.Host
	case at.Opaque != "":
		return "from " + at.Scheme + ":"
	}
	return r.common(at.Path)
}

// common is a name as the pages of a template have it: without fingerprints, numbers and the language.
func (r *traitReader) common(name string) string {
	return r.language.ReplaceAllString(fingerprints.ReplaceAllString(name, "*"), "$1")
}

var fingerprints = regexp.MustCompile(`[0-9a-f]{16,}|[0-9]+`)

// languageTokens finds a page's language in a name, with the separator after it: /en.search.js, /it/search.js, page-it-about.
func languageTokens(tag string) *regexp.Regexp {
	primary, _, _ := strings.Cut(tag, "-")
	return regexp.MustCompile(`(?i)(^|[/._-])(?:` + regexp.QuoteMeta(tag) + `|` + regexp.QuoteMeta(primary) + `)(?:[/._-]|$)`)
}

func text(node *html.Node) string {
	var all strings.Builder
	for child := range node.ChildNodes() {
		all.WriteString(child.Data)
	}
	return all.String()
}

var (
	literals = regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\n]|\\\\.)*'|`(?:[^`\\\\]|\\\\.)*`|url\\([^)]*\\)|#[0-9a-fA-F]{3,8}\\b")
	words    = regexp.MustCompile(`[A-Za-z_$][A-Za-z_$-]+`)
)

// wordsOf is a hash of the names that a script or style uses. Literals are left out, and how often a name stands there: they
// are what a template fills in.
func wordsOf(code string) string {
	used := map[string]bool{}
	for _, word := range words.FindAllString(literals.ReplaceAllString(code, " "), -1) {
		used[word] = true
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(maps.Keys(used)), " ")))
	return hex.EncodeToString(sum[:4])
}

// skeleton writes the structural elements down to a depth, each kind once among its siblings: a list of three articles has
// the layout of a list of ten.
func (r *traitReader) skeleton(node *html.Node, depth int, classes bool) string {
	if depth == 0 {
		return ""
	}
	var parts []string
	for child := range node.ChildNodes() {
		part := ""
		switch {
		case child.Type != html.ElementNode:
		case child.DataAtom == atom.Html || child.DataAtom == atom.Body:
			part = child.Data + r.classesOf(child, classes) + "(" + r.skeleton(child, depth, classes) + ")"
		case structural[child.DataAtom]:
			part = child.Data
			if child.DataAtom == atom.Main || child.DataAtom == atom.Article {
				part += r.classesOf(child, classes)
			}
			part += "(" + r.skeleton(child, depth-1, classes) + ")"
		default:
			part = r.skeleton(child, depth, classes)
		}
		if part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

func (r *traitReader) classesOf(node *html.Node, wanted bool) string {
	if !wanted {
		return ""
	}
	for _, attribute := range node.Attr {
		if attribute.Key == "class" {
			names := strings.Fields(attribute.Val)
			for i := range names {
				names[i] = r.common(names[i])
			}
			slices.Sort(names)
			return "." + strings.Join(slices.Compact(names), ".")
		}
	}
	return ""
}
