package siteheaders

import (
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"tazlab.net/castle/ci/publish/site/builtsite"
	"tazlab.net/castle/ci/publish/site/webref"
)

// address is a reference as a policy sees it. Source is empty for what no policy concerns, such as mailto:.
type address struct {
	source string // "'self'", "data:", "https://example.org"
	host   string // of another site
	path   string // with a host, or of a file of this site
}

// resolve reads a reference of a page or stylesheet.
func (d *document) resolve(base *url.URL, reference string) address {
	reference = strings.Trim(reference, " \t\r\n\f")
	if reference == "" || reference[0] == '#' {
		return address{}
	}
	for _, scheme := range []string{dataScheme, blobScheme} {
		if len(reference) >= len(scheme) && strings.EqualFold(reference[:len(scheme)], scheme) {
			return address{source: scheme}
		}
	}
	parsed, err := url.Parse(strings.NewReplacer("\n", "", "\t", "", "\r", "", " ", "%20").Replace(reference))
	if err != nil {
		return address{}
	}
	target := base.ResolveReference(parsed)
	switch scheme := strings.ToLower(target.Scheme); {
	case scheme != "http" && scheme != "https" && scheme != "ws" && scheme != "wss":
		return address{}
	case strings.EqualFold(target.Host, d.site.Base.Host) && scheme[0] == 'h':
		name := strings.TrimPrefix(target.Path, d.site.Base.Path)
		if name == "" || strings.HasSuffix(name, "/") {
			name += "index.html"
		}
		return address{source: self, path: name}
	default:
		host := hostOf(target)
		if host == "" {
			return address{}
		}
		source := scheme + "://" + host
		if packaged, found := packageOf(host, target.Path); found {
			source = packaged
		} else if strings.HasPrefix(reference, "//") {
			source = host // the page's own scheme
		}
		return address{source: source, host: host, path: target.Path}
	}
}

// hostOf is host and port in the form of a policy; empty for what none can name.
func hostOf(u *url.URL) string {
	name, err := idna.Lookup.ToASCII(strings.ToLower(u.Hostname()))
	if err != nil || !isHostName(name) {
		return ""
	}
	if port := u.Port(); port != "" {
		return net.JoinHostPort(name, port)
	}
	return name
}

// isHostName takes names with a dot and localhost: what scripts put together of parts has neither.
func isHostName(name string) bool {
	if name == "localhost" {
		return true
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return false
		}
	}
	return len(labels) > 1
}

// loads notes that a directive must allow a reference, and returns where that leads.
func (d *document) loads(directive string, base *url.URL, reference string) address {
	to := d.resolve(base, reference)
	switch {
	case to.source == "":
		return to
	case directive == objectSrc:
		d.need(objectSrc, to.source)
		if to.host != "" {
			d.need(frameSrc, to.source) // a page in an object is a frame
		}
	case to.host != "" || to.source != self:
		d.need(directive, to.source)
	}
	if directive == frameSrc || directive == objectSrc {
		if to.source == self {
			d.opens[to.path] = true
			d.need(frameAncestors, self)
		} else if to.host != "" {
			d.need(popups, to.host)
		}
	}
	return to
}

// script notes what a script file needs, and all that it may need when it is another host's.
func (d *document) script(base *url.URL, reference string) {
	to := d.resolve(base, reference)
	switch {
	case to.source == "" || to.source == self:
		return
	case to.host == "":
		d.because(scriptSrc, to.source, "a script in an address")
		return
	}
	d.need(popups, to.host)
	if s := serviceOf(to); s != nil {
		d.uses(s)
		if !strings.Contains(to.source, "://") {
			d.need(scriptSrc, to.source) // without encryption too, where the page has none
		}
		return
	}
	d.unread(to)
	if _, found := packageHosts[to.host]; found {
		for _, l := range libraries {
			if strings.Contains(strings.ToLower(to.path), l.mark) {
				d.uses(&l)
			}
		}
		return
	}
	for _, directive := range []string{imgSrc, connectSrc, frameSrc} {
		d.because(directive, anyHost, "a script of "+to.host+", whose own requests are unknown")
	}
}

// unread notes what a script may need of the place that it comes from.
func (d *document) unread(to address) {
	for _, directive := range []string{scriptSrc, styleSrc, imgSrc, fontSrc, connectSrc, mediaSrc, frameSrc} {
		d.need(directive, to.source)
	}
	d.because(styleSrc, unsafeInline, "a script of "+to.host+", whose own styles are unknown")
}

// stylesheet notes what a stylesheet needs: of another host, its fonts and pictures too.
func (d *document) stylesheet(base *url.URL, reference string) {
	to := d.loads(styleSrc, base, reference)
	if to.host == "" {
		return
	}
	if s := serviceOf(to); s != nil {
		d.uses(s)
		return
	}
	d.need(fontSrc, to.source)
	d.need(imgSrc, to.source)
	d.need(fontSrc, dataScheme)
}

// css notes what the text of a stylesheet, a style element or a style attribute loads.
func (d *document) css(base *url.URL, text []byte) {
	for _, reference := range webref.Stylesheet(text) {
		switch reference.Use {
		case webref.Import:
			d.stylesheet(base, reference.URL)
		case webref.Font:
			d.loads(fontSrc, base, reference.URL)
		default:
			d.loads(imgSrc, base, reference.URL)
		}
	}
}

func (d *document) readStyle(content []byte) { d.css(builtsite.FileOf(d.site.Base, d.file), content) }

// kindOf is the directive that decides about a file of a name, empty where the name does not tell.
func kindOf(name string) string {
	switch extension := strings.ToLower(path.Ext(name)); {
	case slices.Contains([]string{".js", ".mjs"}, extension):
		return scriptSrc
	case extension == ".css":
		return styleSrc
	case slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".bmp"}, extension):
		return imgSrc
	case slices.Contains([]string{".woff", ".woff2", ".ttf", ".otf", ".eot"}, extension):
		return fontSrc
	case slices.Contains([]string{".mp3", ".mp4", ".m4a", ".m4v", ".ogg", ".oga", ".ogv", ".webm", ".wav", ".vtt"}, extension):
		return mediaSrc
	case slices.Contains([]string{".json", ".wasm", ".xml", ".csv", ".cast"}, extension):
		return connectSrc
	}
	return ""
}
