package sitecheck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"

	"tazlab.net/castle/ci/base/findings"

	"golang.org/x/net/html"

	"tazlab.net/castle/ci/publish/site/sitecheck/rules"
	"tazlab.net/castle/ci/publish/site/webref"
)

// page reads one HTML file.
type page struct {
	*document
	tree       *tree
	references *references
	attributes []webref.Attribute // of the current tag
	line       int                // where the current token begins

	begun        bool // something but white space and comments was seen
	hasDoctype   bool
	hasLanguage  bool
	hasTitle     bool
	headingLevel int
}

func readPage(resolver *resolver, document *document, content []byte) {
	document.isPage = true
	document.ids = map[string]int{}
	p := &page{
		document:   document,
		tree:       newTree(document),
		references: newReferences(resolver, document),
	}
	if at := invalidUTF8(content); at >= 0 {
		p.add(1+bytes.Count(content[:at], []byte("\n")), rules.Encoding, "a byte that is not UTF-8", "a byte that is not UTF-8: save the source as UTF-8")
	}
	for token := range webref.Tokens(content, p.tree.inForeign) {
		p.token(token)
	}
	p.tree.finish()
	p.checkDocument()
}

func invalidUTF8(content []byte) int {
	if utf8.Valid(content) {
		return -1
	}
	for at := 0; at < len(content); {
		r, size := utf8.DecodeRune(content[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

func (p *page) token(token *webref.Token) {
	p.line = token.Line
	switch token.Kind {
	case html.ErrorToken:
		if !errors.Is(token.Err, io.EOF) || len(bytes.TrimSpace(token.Raw)) > 0 {
			p.add(p.line, rules.Unclosed, "a tag at the end of the page", "the page ends inside a tag: complete it")
		}
	case html.DoctypeToken:
		p.hasDoctype = !p.begun && strings.EqualFold(strings.TrimSpace(string(token.Text())), "html")
		p.begun = true
	case html.TextToken:
		p.text(token.Raw)
	case html.StartTagToken, html.SelfClosingTagToken:
		p.begun = true
		p.startTag(token)
	case html.EndTagToken:
		p.begun = true
		p.tree.end(token.Name, p.line)
	}
}

func (p *page) text(raw []byte) {
	if len(bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\ufeff")))) == 0 {
		return
	}
	p.begun = true
	p.tree.text()
	switch top := p.tree.top(); top.name {
	case "style":
		p.references.css(raw, p.line)
	case "title":
		p.hasTitle = p.hasTitle || !top.foreign
	}
}

func (p *page) startTag(token *webref.Token) {
	name := token.Name
	repeated := repeatedAttribute(token.Raw) // before the attributes, which are unescaped in place
	p.attributes = token.Attributes()
	if repeated != "" {
		p.add(p.line, rules.DuplicateAttr, "<"+name+" "+repeated+">", "<%s> has the attribute %q twice and browsers drop the second: keep one", name, repeated)
	}
	foreign := p.tree.inForeign()
	p.tree.start(startTag{
		name: name, line: p.line, selfClosing: token.Kind == html.SelfClosingTagToken, interactive: !foreign && p.isInteractive(name), hidden: p.isHidden(),
	})
	p.readAttributes(name, foreign)
	if !foreign {
		p.readElement(name)
	}
}

// attribute returns the value of an attribute of the current tag.
func (p *page) attribute(name string) (value []byte, present bool) {
	for _, a := range p.attributes {
		if string(a.Name) == name {
			return a.Value, true
		}
	}
	return nil, false
}

// value is the attribute without surrounding white space, in lower case, for the attributes that are keywords.
func (p *page) value(name string) string {
	value, _ := p.attribute(name)
	return strings.ToLower(string(bytes.TrimSpace(value)))
}

// template is the current tag with its class alone: what one place of a template makes is alike in that.
func (p *page) template(name string) string {
	if class := p.value("class"); class != "" {
		return fmt.Sprintf("<%s class=%q>", name, class)
	}
	return "<" + name + ">"
}

func (p *page) isInteractive(name string) bool {
	if !interactive[name] {
		return false
	}
	switch name {
	case "input":
		return p.value("type") != "hidden"
	case "audio", "video":
		_, controls := p.attribute("controls")
		return controls
	}
	return true
}

// isHidden reports whether the current tag's element, and with it all that is inside, is kept from those who have the page read
// to them.
func (p *page) isHidden() bool {
	for _, a := range p.attributes {
		switch string(a.Name) {
		case "hidden", "inert":
			return true
		case "aria-hidden":
			if string(a.Value) == "true" {
				return true
			}
		case "style":
			if style := strings.ToLower(strings.Join(strings.Fields(string(a.Value)), "")); strings.Contains(style, "display:none") ||
				strings.Contains(style, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

// isDecoration reports whether the current tag's element says that it means nothing, which it cannot once it takes the focus.
func (p *page) isDecoration() bool {
	_, focused := p.attribute("tabindex")
	role := p.value("role")
	return !focused && (role == "presentation" || role == "none")
}

// readAttributes judges what any element can have: ids, references, styles.
func (p *page) readAttributes(name string, foreign bool) {
	for _, a := range p.attributes {
		switch string(a.Name) {
		case "id":
			p.readID(name, a.Value)
			continue
		case "style":
			p.references.css(a.Value, p.line)
			continue
		}
		use := webref.Attributes[name][string(a.Name)]
		if name == "a" && foreign && string(a.Name) == "xlink:href" {
			use = webref.Link
		}
		if use != webref.NoReference {
			p.references.follow(source{name, string(a.Name), p.line}, a.Value, use)
		}
	}
}

func (p *page) readID(name string, value []byte) {
	id := string(value)
	first, taken := p.ids[id]
	switch {
	case id == "" || strings.ContainsAny(id, " \t\r\n\f"):
		p.add(p.line, rules.DuplicateID, "malformed <"+name+" id>", "<%s id=%q>: an id is at least one character and no white space", name, id)
	case taken:
		p.add(p.line, rules.DuplicateID, "<"+name+" id>", "<%s id=%q>: line %d has this id already; a link finds only the first, so rename one", name, id, first)
	default:
		p.ids[id] = p.line
	}
}

// readElement judges what only some elements have.
func (p *page) readElement(name string) {
	switch name {
	case "html":
		language, declared := p.attribute("lang")
		p.hasLanguage = p.hasLanguage || declared
		p.language = strings.TrimSpace(string(language))
	case "base":
		if href, ok := p.attribute("href"); ok {
			if base, err := url.Parse(string(href)); err == nil {
				p.references.base = p.references.base.ResolveReference(base)
			}
		}
	case "meta":
		p.readMeta()
	case "link":
		p.readLink()
	case "img":
		source, _ := p.attribute("src")
		if _, present := p.attribute("alt"); !present && !p.isDecoration() && !p.isHidden() && !p.tree.top().hidden {
			p.add(p.line, rules.ImgAlt, p.template("img"), "<img src=%q> has no alt: describe the image, or write alt=\"\" where it is decoration", findings.Cut(string(source), findings.WidestQuoted))
		}
	case "a":
		if name, ok := p.attribute("name"); ok && len(name) > 0 {
			if _, taken := p.ids[string(name)]; !taken {
				p.ids[string(name)] = p.line // the old way to mark a place, which still works
			}
		}
	default:
		if headings[name] {
			level := int(name[1] - '0')
			if p.headingLevel > 0 && level > p.headingLevel+1 {
				p.add(p.line, rules.HeadingOrder, fmt.Sprintf("<%s> after <h%d>", name, p.headingLevel), "<%s> follows <h%d>: a level is left out, use <h%d>", name, p.headingLevel, p.headingLevel+1)
			}
			p.headingLevel = level
		}
	}
}

func (p *page) readMeta() {
	content, _ := p.attribute("content")
	if p.value("http-equiv") == "refresh" {
		if _, target, ok := bytes.Cut(content, []byte("=")); ok {
			p.redirects = true
			p.references.follow(source{"meta", "content", p.line}, bytes.Trim(target, `'" `), webref.Link)
		}
	}
	switch name := p.value("property") + p.value("name"); name {
	case "og:url", "og:image", "og:audio", "og:video", "twitter:image":
		p.references.follow(source{"meta", "content", p.line}, content, webref.Link)
	}
}

// loadingLinks are the values of rel that make a browser ask for the link by itself.
var loadingLinks = words(`stylesheet icon apple-touch-icon apple-touch-icon-precomposed mask-icon manifest preload modulepreload
	prefetch prerender preconnect dns-prefetch`)

func (p *page) readLink() {
	href, ok := p.attribute("href")
	if !ok {
		return
	}
	use := webref.Link
	connects := false
	for relation := range strings.FieldsSeq(p.value("rel")) {
		if loadingLinks[relation] {
			use = webref.Image
		}
		connects = connects || relation == "preconnect" || relation == "dns-prefetch"
	}
	from := source{"link", "href", p.line}
	if connects && p.references.resolver.resolve(p.references.base, href).host == "" {
		return // to this very host: there is no file to find
	}
	target := p.references.follow(from, href, use)
	if set, ok := p.attribute("imagesrcset"); ok {
		p.references.follow(source{"link", "imagesrcset", p.line}, set, webref.ImageSet)
	}
	if language := p.value("hreflang"); language != "" && language != "x-default" && p.value("rel") == "alternate" {
		p.alternates = append(p.alternates, alternate{language: language, file: target.file, line: p.line})
	}
}

// checkDocument reports what the whole page lacks.
func (p *page) checkDocument() {
	if !p.hasDoctype {
		p.add(1, rules.NoDoctype, "no <!doctype html>", "the page does not begin with <!doctype html>: browsers fall back to the rules of 1998; put it first")
	}
	if !p.hasLanguage {
		p.add(1, rules.NoLang, "no <html lang>", "the language is not declared: write <html lang=\"…\">")
	}
	if !p.hasTitle {
		p.add(1, rules.NoTitle, "no <title>", "the page has no title: write <title>…</title> into its head")
	}
}

// repeatedAttribute finds an attribute that stands twice in the raw text of a start tag; the tokenizer keeps the first only.
func repeatedAttribute(raw []byte) string {
	var names [16][]byte
	seen := names[:0]
	rest := raw[1:]
	rest = rest[nameLength(rest, " \t\r\n\f/>"):]
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n\f/")
		if len(rest) == 0 || rest[0] == '>' {
			return ""
		}
		length := max(1, nameLength(rest, " \t\r\n\f/>=")) // an equals sign in the first place is part of the name
		name := rest[:length]
		for _, other := range seen {
			if bytes.EqualFold(other, name) {
				return strings.ToLower(string(name))
			}
		}
		seen = append(seen, name)
		rest = bytes.TrimLeft(rest[length:], " \t\r\n\f")
		if len(rest) > 0 && rest[0] == '=' {
			rest = afterValue(bytes.TrimLeft(rest[1:], " \t\r\n\f"))
		}
	}
}

func nameLength(text []byte, ends string) int {
	if end := bytes.IndexAny(text, ends); end >= 0 {
		return end
	}
	return len(text)
}

func afterValue(text []byte) []byte {
	if len(text) > 0 && (text[0] == '"' || text[0] == '\'') {
		if end := bytes.IndexByte(text[1:], text[0]); end >= 0 {
			return text[end+2:]
		}
		return nil
	}
	return text[nameLength(text, " \t\r\n\f>"):]
}
