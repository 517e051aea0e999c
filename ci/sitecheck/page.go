package sitecheck

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// charsetWithin is how far into a page browsers look for its encoding, in bytes.
const charsetWithin = 1024

// attribute is a name and an unescaped value; both are valid until the next token is read.
type attribute struct {
	name  []byte
	value []byte
}

// page reads one HTML file.
type page struct {
	*document
	tree       *tree
	references *references
	tokens     *html.Tokenizer
	attributes []attribute

	line     int // where the current token begins
	nextLine int
	offset   int // in bytes, where the current token ends

	begun        bool // something but white space and comments was seen
	hasDoctype   bool
	hasLanguage  bool
	hasTitle     bool
	hasCharset   bool
	headingLevel int
}

func readPage(resolver *resolver, document *document, content []byte) {
	document.isPage = true
	document.ids = map[string]int{}
	p := &page{
		document:   document,
		tree:       newTree(document),
		references: newReferences(resolver, document),
		tokens:     html.NewTokenizer(bytes.NewReader(content)),
		nextLine:   1,
	}
	if at := invalidUTF8(content); at >= 0 {
		p.add(1+bytes.Count(content[:at], []byte("\n")), ruleEncoding, "a byte that is not UTF-8: save the source as UTF-8")
	}
	for p.token() {
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

// token reads one token, and reports false at the end of the page.
func (p *page) token() bool {
	kind := p.tokens.Next()
	raw := p.tokens.Raw()
	p.line = p.nextLine
	p.nextLine += bytes.Count(raw, []byte("\n"))
	p.offset += len(raw)
	switch kind {
	case html.ErrorToken:
		if err := p.tokens.Err(); !errors.Is(err, io.EOF) || len(bytes.TrimSpace(raw)) > 0 {
			p.add(p.line, ruleUnclosed, "the page ends inside a tag: complete it")
		}
		return false
	case html.DoctypeToken:
		p.hasDoctype = !p.begun && strings.EqualFold(strings.TrimSpace(string(p.tokens.Text())), "html")
		p.begun = true
	case html.TextToken:
		p.text(raw)
	case html.StartTagToken, html.SelfClosingTagToken:
		p.begun = true
		p.startTag(raw, kind == html.SelfClosingTagToken)
	case html.EndTagToken:
		p.begun = true
		name, _ := p.tokens.TagName()
		p.tree.end(intern(name), p.line)
	}
	return true
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

func (p *page) startTag(raw []byte, selfClosing bool) {
	repeated := repeatedAttribute(raw) // before TagAttr, which unescapes in place
	nameBytes, more := p.tokens.TagName()
	name := intern(nameBytes)
	p.attributes = p.attributes[:0]
	for more {
		var a attribute
		a.name, a.value, more = p.tokens.TagAttr()
		p.attributes = append(p.attributes, a)
	}
	if repeated != "" {
		p.add(p.line, ruleDuplicateAttr, "<%s> has the attribute %q twice and browsers drop the second: keep one", name, repeated)
	}
	foreign := p.tree.inForeign()
	if foreign || name == "noscript" {
		p.tokens.NextIsNotRawText()
	}
	p.tree.start(name, p.line, selfClosing, !foreign && p.isInteractive(name))
	p.readAttributes(name, foreign)
	if !foreign {
		p.readElement(name)
	}
}

func intern(name []byte) string {
	if known := atom.Lookup(name); known != 0 {
		return known.String()
	}
	return string(name)
}

// attribute returns the value of an attribute of the current tag.
func (p *page) attribute(name string) (value []byte, present bool) {
	for _, a := range p.attributes {
		if string(a.name) == name {
			return a.value, true
		}
	}
	return nil, false
}

// value is the attribute without surrounding white space, in lower case, for the attributes that are keywords.
func (p *page) value(name string) string {
	value, _ := p.attribute(name)
	return strings.ToLower(string(bytes.TrimSpace(value)))
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

// readAttributes judges what any element can have: ids, references, styles.
func (p *page) readAttributes(name string, foreign bool) {
	for _, a := range p.attributes {
		switch string(a.name) {
		case "id":
			p.readID(name, a.value)
			continue
		case "style":
			p.references.css(a.value, p.line)
			continue
		}
		use := uses[name][string(a.name)]
		if name == "a" && foreign && string(a.name) == "xlink:href" {
			use = navigates
		}
		if use != unused {
			p.references.follow(source{name, string(a.name), p.line}, a.value, use)
		}
	}
}

func (p *page) readID(name string, value []byte) {
	id := string(value)
	first, taken := p.ids[id]
	switch {
	case id == "" || strings.ContainsAny(id, " \t\r\n\f"):
		p.add(p.line, ruleDuplicateID, "<%s id=%q>: an id is at least one character and no white space", name, id)
	case taken:
		p.add(p.line, ruleDuplicateID, "<%s id=%q>: line %d has this id already; a link finds only the first, so rename one", name, id, first)
	default:
		p.ids[id] = p.line
	}
}

// readElement judges what only some elements have.
func (p *page) readElement(name string) {
	switch name {
	case "html":
		if language, _ := p.attribute("lang"); len(bytes.TrimSpace(language)) > 0 {
			p.hasLanguage = true
			p.language = strings.TrimSpace(string(language))
		}
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
		if _, present := p.attribute("alt"); !present {
			p.add(p.line, ruleImgAlt, "<img src=%q> has no alt: describe the image, or write alt=\"\" where it is decoration", source)
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
				p.warn(p.line, ruleHeadingOrder, "<%s> follows <h%d>: a level is left out, use <h%d>", name, p.headingLevel, p.headingLevel+1)
			}
			p.headingLevel = level
		}
	}
}

func (p *page) readMeta() {
	content, _ := p.attribute("content")
	charset := p.value("charset")
	switch p.value("http-equiv") {
	case "content-type":
		_, charset, _ = strings.Cut(p.value("content"), "charset=")
	case "refresh":
		if _, target, ok := bytes.Cut(content, []byte("=")); ok {
			p.redirects = true
			p.references.follow(source{"meta", "content", p.line}, bytes.Trim(target, `'" `), navigates)
		}
	}
	if charset != "" {
		p.hasCharset = true
		switch {
		case charset != "utf-8":
			p.add(p.line, ruleNoCharset, "the encoding is declared as %q: use utf-8", charset)
		case p.offset > charsetWithin:
			p.add(p.line, ruleNoCharset, "the encoding is declared after the first %d bytes, where browsers do not look: move it up", charsetWithin)
		}
	}
	switch name := p.value("property") + p.value("name"); name {
	case "og:url", "og:image", "og:audio", "og:video", "twitter:image":
		p.references.follow(source{"meta", "content", p.line}, content, navigates)
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
	use := navigates
	connects := false
	for relation := range strings.FieldsSeq(p.value("rel")) {
		if loadingLinks[relation] {
			use = loads
		}
		connects = connects || relation == "preconnect" || relation == "dns-prefetch"
	}
	from := source{"link", "href", p.line}
	if connects && p.references.resolver.resolve(p.references.base, href).host == "" {
		return // to this very host: there is no file to find
	}
	target := p.references.follow(from, href, use)
	if set, ok := p.attribute("imagesrcset"); ok {
		p.references.follow(source{"link", "imagesrcset", p.line}, set, loadsSet)
	}
	if language := p.value("hreflang"); language != "" && language != "x-default" && p.value("rel") == "alternate" {
		p.alternates = append(p.alternates, alternate{language: language, file: target.file, line: p.line})
	}
}

// checkDocument reports what the whole page lacks.
func (p *page) checkDocument() {
	if !p.hasDoctype {
		p.add(1, ruleNoDoctype, "the page does not begin with <!doctype html>: browsers fall back to the rules of 1998; put it first")
	}
	if !p.hasLanguage {
		p.add(1, ruleNoLang, "the language is not declared: write <html lang=\"…\">")
	}
	if !p.hasTitle {
		p.add(1, ruleNoTitle, "the page has no title: write <title>…</title> into its head")
	}
	if !p.hasCharset {
		p.add(1, ruleNoCharset, "the encoding is not declared: write <meta charset=\"utf-8\"> first in the head")
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
