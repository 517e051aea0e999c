package siteheaders

import (
	"regexp"
	"strings"

	"tazlab.net/castle/ci/publish/site/builtsite"
)

// telltale is a piece of JavaScript from which follows what a script needs when it runs.
type telltale struct {
	sign  *regexp.Regexp // begins with literal text, which makes it fast
	needs []need
}

var telltales = []telltale{
	{regexp.MustCompile(`createElement(NS)?\([^()]{0,40}["'` + "`" + `]style["'` + "`" + `]`), []need{{styleSrc, unsafeInline, "scripts that make style elements as they run"}}},
	{regexp.MustCompile(`\.append\(["']style["']`), []need{{styleSrc, unsafeInline, "scripts that make style elements as they run"}}},
	{regexp.MustCompile(`<style[\s>]`), []need{{styleSrc, unsafeInline, "scripts that make style elements as they run"}}},
	{regexp.MustCompile(`setAttribute\(["'` + "`" + `]style["'` + "`" + `]`), []need{{styleSrcAttr, unsafeInline, "scripts that write style attributes"}}},
	{regexp.MustCompile(`\.attr\(["']style["']`), []need{{styleSrcAttr, unsafeInline, "scripts that write style attributes"}}},
	{regexp.MustCompile(`style=(\\?["']|\$\{)`), []need{{styleSrcAttr, unsafeInline, "scripts that write style attributes"}}},
	{regexp.MustCompile(`setAttribute\(["'` + "`" + `]on[a-z]+["'` + "`" + `]`), []need{{scriptSrcAttr, unsafeInline, "scripts that write event handlers into attributes"}}},
	{regexp.MustCompile(`getPrototypeOf\(async (function ?\(\) ?\{ ?\}|\(\) ?=> ?\{ ?\})\)`), []need{evaluates}},
	{regexp.MustCompile(`(setTimeout|setInterval)\(["']`), []need{evaluates}},
	{regexp.MustCompile(`WebAssembly\.`), []need{{scriptSrc, wasmUnsafeEval, ""}}},
	{regexp.MustCompile(`createObjectURL\(`), []need{{imgSrc, blobScheme, ""}, {mediaSrc, blobScheme, ""}, {workerSrc, blobScheme, ""}, {connectSrc, blobScheme, ""}}},
	{regexp.MustCompile(`["']data:(audio|video)/`), []need{{mediaSrc, dataScheme, ""}}},
	{regexp.MustCompile(`["']data:(font|application/(x-)?font)`), []need{{fontSrc, dataScheme, ""}}},
	{regexp.MustCompile(`["']data:application/(octet-stream|wasm|json)`), []need{{connectSrc, dataScheme, ""}}},
	{regexp.MustCompile(`window\.open\(`), []need{{popups, "window.open", ""}}},
	{regexp.MustCompile(`\.geolocation\b`), []need{{permission + "geolocation", "self", ""}}},
	{regexp.MustCompile(`getUserMedia\b`), []need{{permission + "camera", "self", ""}, {permission + "microphone", "self", ""}}},
	{regexp.MustCompile(`new PaymentRequest\(`), []need{{permission + "payment", "self", ""}}},
	{regexp.MustCompile(`navigator\.usb\b`), []need{{permission + "usb", "self", ""}}},
}

var evaluates = need{scriptSrc, unsafeEval, "scripts that run text as code"}

func (d *document) readScript(content []byte) { d.code(string(content), false) }

// code reads JavaScript, in a file, an element or an attribute. An import map holds addresses of scripts only.
func (d *document) code(text string, importMap bool) {
	text = strings.ReplaceAll(text, `\/`, "/") // as JSON has it
	for _, t := range telltales {
		if t.sign.MatchString(text) {
			for _, wanted := range t.needs {
				d.because(wanted.directive, wanted.source, wanted.why)
			}
		}
	}
	if evaluatesText(text) {
		d.because(evaluates.directive, evaluates.source, evaluates.why)
	}
	for i := range services {
		if mark := services[i].mark; mark != "" && strings.Contains(text, mark) {
			d.uses(&services[i])
			d.need(popups, services[i].name)
		}
	}
	d.addresses(text, importMap)
}

// evaluator finds calls of eval, and of Function with a text or as a constructor.
var evaluator = regexp.MustCompile(`eval\(|new Function\(["'` + "`" + `]?|Function\(["'` + "`" + `]`)

// asGlobal is the idiom by which a library finds the global object where nothing else does: no browser gets there.
var asGlobal = regexp.MustCompile(`^(return this|r["'], ?["']regeneratorRuntime)`)

// indirect is a call of eval that sees no local names, and unreached one that only keeps a compiler from optimising.
var (
	indirect  = regexp.MustCompile(`\(0, ?eval\)\(`)
	unreached = regexp.MustCompile(`return [^;{}]{1,120};\s*\(0, ?eval\)\(`)
)

func evaluatesText(text string) bool {
	for _, at := range evaluator.FindAllStringIndex(text, -1) {
		before := text[max(0, at[0]-7):at[0]]
		switch {
		case before != "" && isIdentifier(before[len(before)-1]): // a longer name
		case strings.HasSuffix(before, ".") && before != "window.": // a method of that name
		case asGlobal.MatchString(text[at[1]:]):
		default:
			return true
		}
	}
	return indirect.MatchString(text) && !unreached.MatchString(text)
}

func isIdentifier(c byte) bool {
	return c == '_' || c == '$' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// neverLoaded are hosts whose addresses stand in scripts as names, in messages, or for visitors to go to.
var neverLoaded = map[string]bool{
	"www.w3.org": true, "w3.org": true, "schema.org": true, "json-schema.org": true, "purl.org": true, "ns.adobe.com": true,
	"github.com": true, "developer.mozilla.org": true, "html.spec.whatwg.org": true, "stackoverflow.com": true, "en.wikipedia.org": true,
	"reactjs.org": true, "react.dev": true, "fb.me": true, "vuejs.org": true, "jquery.com": true, "www.npmjs.com": true, "npms.io": true,
	"opensource.org": true, "creativecommons.org": true, "tools.ietf.org": true, "datatracker.ietf.org": true, "tc39.es": true,
	"bugs.chromium.org": true, "crbug.com": true, "bugzilla.mozilla.org": true, "bugs.webkit.org": true, "example.com": true,
	"www.facebook.com": true, "twitter.com": true, "x.com": true, "www.linkedin.com": true, "t.me": true, "wa.me": true,
	"api.whatsapp.com": true, "pinterest.com": true, "www.pinterest.com": true, "www.reddit.com": true, "reddit.com": true,
	"news.ycombinator.com": true, "bsky.app": true,
}

// contexts say what a script does with an address, by what stands in front of it.
var contexts = []struct {
	before    *regexp.Regexp
	directive string // empty: nothing that a policy concerns
}{
	{regexp.MustCompile(`(fetch|sendBeacon|EventSource|WebSocket|getJSON|ajax|axios|\.get|\.post)\($`), connectSrc},
	{regexp.MustCompile(`\.open\(["'][A-Za-z]+["'], ?$`), connectSrc},
	{regexp.MustCompile(`(import ?|from ?|import\(|importScripts\(|getScript\(|Worker\()$`), scriptSrc},
	{regexp.MustCompile(`url\($`), imgSrc},
	{regexp.MustCompile(`<script[^<>]{0,60}src=$`), scriptSrc},
	{regexp.MustCompile(`<iframe[^<>]{0,60}src=$`), frameSrc},
	{regexp.MustCompile(`<img[^<>]{0,60}src=$`), imgSrc},
	{regexp.MustCompile(`(preconnect|dns-prefetch)["'], ?$`), ""},
	{regexp.MustCompile(`(window\.open\(|location ?= ?|location\.href ?= ?|location\.assign\(|location\.replace\(|xmlns[:a-z]*["']?[=:,] ?)$`), ""},
	{regexp.MustCompile(`<a [^<>]{0,60}href=$`), ""},
}

// addresses finds absolute addresses in string literals, and takes each for what the script seems to do with it. Where
// that is not to be seen, it may be asked for data or pictures, and for scripts and frames where the script makes such.
func (d *document) addresses(text string, importMap bool) {
	makesScripts := strings.Contains(text, "createElement(\"script\"") || strings.Contains(text, "createElement('script'")
	makesFrames := strings.Contains(text, "<iframe") || strings.Contains(text, "createElement(\"iframe\"") || strings.Contains(text, "createElement('iframe'")
	for at := 0; ; at += 2 {
		next := strings.Index(text[at:], "//")
		if next < 0 {
			return
		}
		at += next
		start := at - len(schemeBefore(text[:at]))
		if start == 0 || !strings.ContainsRune("\"'`(=", rune(text[start-1])) || start == at && strings.ContainsRune("(=", rune(text[start-1])) {
			continue
		}
		reference := literal(text[start:])
		to := d.resolve(builtsite.UnknownSite, reference)
		switch {
		case to.host == "" || to.host == builtsite.UnknownSite.Host: // it names none, like "//# sourceURL="
			continue
		case neverLoaded[to.host] || strings.EqualFold(to.host, d.site.Base.Host):
			continue
		}
		before := strings.TrimRight(text[max(0, start-100):start], "\"'`")
		d.address(to, reference, whole(text[start:]), before, importMap, makesScripts, makesFrames)
	}
}

// address notes what a script needs for one address in it: reference up to where something is put in, whole to its end.
func (d *document) address(to address, reference, whole, before string, importMap, makesScripts, makesFrames bool) {
	directive, known := scriptSrc, importMap
	if !known {
		directive, known = inContext(before)
	}
	if !known {
		directive = kindOf(whole)
		known = directive != ""
	}
	switch {
	case strings.HasPrefix(to.source, "ws"):
		d.need(connectSrc, to.source)
	case known && directive == "":
	case !known && strings.HasPrefix(to.source, "http://"): // a name: browsers load nothing that is not encrypted into a page that is
	case directive == scriptSrc:
		d.script(builtsite.UnknownSite, reference)
	case directive == styleSrc:
		d.stylesheet(builtsite.UnknownSite, reference)
	case known:
		d.loads(directive, builtsite.UnknownSite, reference)
	case !known && serviceOf(to) != nil:
		d.script(builtsite.UnknownSite, reference)
	case strings.Contains(to.path, "/embed"):
		d.loads(frameSrc, builtsite.UnknownSite, reference)
	default:
		d.need(connectSrc, to.source)
		d.need(imgSrc, to.source)
		if makesScripts {
			d.unread(to)
			d.need(popups, to.host)
		}
		if makesFrames {
			d.loads(frameSrc, builtsite.UnknownSite, reference)
		}
	}
}

func inContext(before string) (directive string, known bool) {
	for _, c := range contexts {
		if c.before.MatchString(before) {
			return c.directive, true
		}
	}
	return "", false
}

// schemeBefore is the scheme that a text ends in, of those that a policy concerns.
func schemeBefore(text string) string {
	for _, scheme := range []string{"https:", "http:", "wss:", "ws:"} {
		if strings.HasSuffix(text, scheme) {
			return scheme
		}
	}
	return ""
}

// whole is the text up to the end of its string, what is put in included, without a query.
func whole(text string) string {
	text = text[:min(len(text), 300)]
	if end := strings.IndexAny(text, "\"'`?#"); end >= 0 {
		return text[:end]
	}
	return text
}

// literal is the address that a text begins with, up to where its string ends or something is put in.
func literal(text string) string {
	text = text[:min(len(text), 2000)]
	if end := strings.IndexAny(text, "\"'` \t\r\n<>()\\${},;"); end >= 0 {
		return text[:end]
	}
	return text
}
