package siteheaders

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"tazlab.net/castle/ci/publish/site/builtsite"
	"tazlab.net/castle/ci/publish/site/webref"
)

// directiveOf are the directives that decide about what attributes refer to. A script's and a link's depend on more: see element.
var directiveOf = map[webref.Kind]string{
	webref.Image: imgSrc, webref.ImageSet: imgSrc, webref.Media: mediaSrc, webref.Frame: frameSrc, webref.Object: objectSrc,
	webref.Ping: connectSrc, webref.Form: formAction,
}

// page reads one document of markup.
type page struct {
	*document
	base    *url.URL
	xml     bool     // all of it is as inside <svg>
	islands []string // open elements that lead into drawings and out of them again

	inline     string // "script" or "style" while inside one
	attributes map[string]string
	text       strings.Builder
}

func (d *document) readPage(content []byte) { d.readMarkup(content, false) }

func (d *document) readXML(content []byte) { d.readMarkup(content, true) }

func (d *document) readMarkup(content []byte, xml bool) {
	p := &page{document: d, base: builtsite.FileOf(d.site.Base, d.file), xml: xml}
	for token := range webref.Tokens(content, p.foreign) {
		switch token.Kind {
		case html.ErrorToken:
			if p.inline == "style" {
				p.endInline() // a script that is not closed does not run, a style applies
			}
		case html.TextToken:
			if p.inline != "" {
				p.text.Write(token.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			p.start(token.Name, token.AttributeMap(), token.Kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			p.end(token.Name)
		}
	}
}

// foreign says whether we are in a drawing or a formula, where script and style hold text like any other element.
func (p *page) foreign() bool {
	if len(p.islands) == 0 {
		return p.xml
	}
	last := p.islands[len(p.islands)-1]
	return last == "svg" || last == "math"
}

func (p *page) start(name string, attributes map[string]string, selfClosing bool) {
	foreign := p.foreign()
	if !selfClosing || !foreign {
		switch {
		case name == "svg" || name == "math", foreign && (name == "foreignobject" || name == "desc" || name == "title"):
			p.islands = append(p.islands, name)
		case name == "script" || name == "style":
			p.inline, p.attributes = name, attributes
			p.text.Reset()
		}
	}
	p.readAttributes(name, attributes)
	p.element(name, attributes)
}

func (p *page) end(name string) {
	if name == p.inline {
		p.endInline()
	}
	if last := len(p.islands) - 1; last >= 0 && p.islands[last] == name {
		p.islands = p.islands[:last]
	}
}

func (p *page) endInline() {
	name, attributes, text := p.inline, p.attributes, p.text.String()
	p.inline = ""
	kind := strings.ToLower(strings.TrimSpace(attributes["type"]))
	if name == "style" {
		if kind == "" || kind == "text/css" {
			p.need(styleSrc, hash(text))
			p.css(p.base, []byte(text))
		}
		return
	}
	if !webref.IsScript(kind) || isFile(attributes) || text == "" {
		return
	}
	p.need(scriptSrc, hash(text))
	if kind != "speculationrules" {
		p.code(text, kind == "importmap")
	}
}

// isFile says whether a script element names a file; what stands in the element is then nothing.
func isFile(attributes map[string]string) bool {
	for _, name := range []string{"src", "href", "xlink:href"} {
		if _, found := attributes[name]; found {
			return true
		}
	}
	return false
}

// readAttributes reads what any element can have.
func (p *page) readAttributes(element string, attributes map[string]string) {
	for name, value := range attributes {
		kind := webref.Attributes[element][name]
		directive := directiveOf[kind]
		lazy, isData := strings.CutPrefix(name, "data-")
		switch {
		case name == "style":
			p.because(styleSrcAttr, unsafeInline, "style attributes")
			p.css(p.base, []byte(value))
		case isHandler(name):
			p.need(scriptSrcAttr, hash(value))
			p.code(value, false)
		case name == "srcdoc" && element == "iframe":
			p.readMarkup([]byte(value), false) // such a frame is under the page's own policy
		case isData:
			p.lazy(element, lazy, value)
		case directive == formAction:
			p.form(value)
		case kind == webref.ImageSet:
			p.loadsSet(directive, value)
		case directive != "":
			p.loads(directive, p.base, value)
		}
		if code, found := codeOf(value); found && (name == "href" || name == "xlink:href" || name == "action" || name == "formaction" || name == "src") {
			// Hashes for these are not read by all browsers.
			p.because(scriptSrc, unsafeInline, "addresses that are scripts (javascript:)")
			p.code(code, false)
		}
	}
}

// codeOf is the script of a javascript: address.
func codeOf(address string) (code string, found bool) {
	const scheme = "javascript:"
	address = strings.TrimSpace(address)
	if len(address) < len(scheme) || !strings.EqualFold(address[:len(scheme)], scheme) {
		return "", false
	}
	return address[len(scheme):], true
}

// isHandler tells onclick and its like from attributes of other names.
func isHandler(name string) bool {
	event, found := strings.CutPrefix(name, "on")
	return found && len(event) > 2 && !strings.ContainsFunc(event, func(r rune) bool { return r < 'a' || r > 'z' })
}

// lazy reads a data attribute, where scripts find what they load later.
func (p *page) lazy(element, name, value string) {
	directive := directiveOf[webref.Attributes[element][name]]
	switch {
	case strings.HasSuffix(name, "srcset"):
		p.loadsSet(imgSrc, value)
	case directive != "" && directive != formAction:
		p.loads(directive, p.base, value)
	case element == "script" && strings.Contains(value, "//"):
		if to := p.resolve(p.base, value); to.host != "" {
			p.need(connectSrc, to.source)
			p.need(imgSrc, to.source)
		}
	case strings.Contains(value, "//") && !strings.ContainsAny(value, " <>{"):
		for _, part := range []string{"src", "bg", "background", "image", "img", "poster", "thumb"} {
			if strings.Contains(name, part) {
				p.loads(imgSrc, p.base, value)
				return
			}
		}
	}
}

// form reads where a form is sent. Browsers hold a redirect that answers it to the same list, and where another host
// redirects to is not known.
func (p *page) form(action string) {
	if to := p.loads(formAction, p.base, action); to.host != "" {
		p.because(formAction, anyHost, "a form that "+to.host+" answers, perhaps with a redirect")
	}
}

// element reads what depends on more than one attribute.
func (p *page) element(name string, attributes map[string]string) {
	switch name {
	case "base":
		if href, found := attributes["href"]; found {
			p.loads(baseURI, p.base, href)
			if base, err := url.Parse(strings.TrimSpace(href)); err == nil {
				p.base = p.base.ResolveReference(base)
			}
		}
	case "script":
		if webref.IsScript(attributes["type"]) {
			for _, key := range []string{"src", "href", "xlink:href"} {
				p.script(p.base, attributes[key])
			}
		}
	case "iframe":
		if allow := attributes["allow"]; allow != "" {
			origin := ""
			if to := p.resolve(p.base, attributes["src"]); to.host != "" {
				origin = "https://" + to.host
			}
			p.delegate(allow, origin)
		}
	case "a", "area":
		if href := attributes["href"]; strings.Contains(href, ".svg") {
			if to := p.resolve(p.base, href); to.source == self {
				p.opens[to.path] = true
			}
		}
	case "link":
		p.link(attributes)
	}
}

// preloads are the values of a link's as attribute, and the directive that decides about each.
var preloads = map[string]string{
	"audio": mediaSrc, "embed": objectSrc, "fetch": connectSrc, "font": fontSrc, "image": imgSrc, "json": connectSrc, "object": objectSrc,
	"script": scriptSrc, "style": styleSrc, "track": mediaSrc, "video": mediaSrc, "worker": workerSrc,
}

func (p *page) link(attributes map[string]string) {
	href, as := attributes["href"], strings.ToLower(strings.TrimSpace(attributes["as"]))
	for relation := range strings.FieldsSeq(strings.ToLower(attributes["rel"])) {
		switch relation {
		case "stylesheet":
			p.stylesheet(p.base, href)
		case "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon":
			p.loads(imgSrc, p.base, href)
		case "manifest":
			p.loads(manifestSrc, p.base, href)
		case "modulepreload":
			p.script(p.base, href)
		case "preload", "prefetch":
			directive := preloads[as]
			switch {
			case directive == scriptSrc:
				p.script(p.base, href)
			case directive == styleSrc:
				p.stylesheet(p.base, href)
			case directive != "":
				p.loads(directive, p.base, href)
			case relation == "prefetch":
				p.loads(connectSrc, p.base, href) // it must stand in any directive, no matter which
			}
		}
	}
	if set := attributes["imagesrcset"]; set != "" {
		p.loadsSet(imgSrc, set)
	}
}

// loadsSet reads a list of pictures for several sizes.
func (p *page) loadsSet(directive, set string) {
	for _, reference := range webref.Srcset([]byte(set)) {
		p.loads(directive, p.base, string(reference))
	}
}
