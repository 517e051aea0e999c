package sitecheck

import (
	"maps"
	"slices"
	"strings"
)

// The tables below follow the HTML standard (html.spec.whatwg.org): sections 4 (elements and their content models), 13.1.2.4
// (optional tags), 13.2.4.2 (scopes) and 16 (obsolete features).

type set map[string]bool

func words(list string) set {
	s := set{}
	for _, word := range strings.Fields(list) {
		s[word] = true
	}
	return s
}

var (
	knownElements = words(`a abbr address area article aside audio b base bdi bdo blockquote body br button canvas caption
		cite code col colgroup data datalist dd del details dfn dialog div dl dt em embed fieldset figcaption figure footer form
		h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img input ins kbd label legend li link main map mark math menu
		meta meter nav noscript object ol optgroup option output p picture pre progress q rp rt ruby s samp script search
		section select slot small source span strong style sub summary sup svg table tbody td template textarea tfoot th thead
		time title tr track u ul var video wbr`)

	obsoleteElements = words(`acronym applet basefont bgsound big blink center dir font frame frameset isindex keygen
		listing marquee menuitem multicol nextid nobr noembed noframes param plaintext rb rtc spacer strike tt xmp`)

	voidElements = words(`area base br col embed hr img input link meta source track wbr
		basefont bgsound frame keygen nextid param spacer`)

	headContent = words("base link meta noscript script style template title")

	// endTagOptional may be left open where their parent ends or a sibling begins.
	endTagOptional = words("html head body li dt dd p rt rp optgroup option colgroup caption thead tbody tfoot tr td th")

	// keepsParagraphOpen are the parents whose end does not end a paragraph; so are custom elements.
	keepsParagraphOpen = words("a audio del ins map noscript video")

	// closesParagraph are the elements that a paragraph cannot contain: their start ends it.
	closesParagraph = words(`address article aside blockquote details dialog div dl fieldset figcaption figure footer form
		h1 h2 h3 h4 h5 h6 header hgroup hr main menu nav ol p pre search section table ul`)

	// paragraphScope hides a paragraph from what is inside ("button scope").
	paragraphScope = words("button caption html object table td template th svg math")

	phrasingOnly = words(`abbr b bdi bdo button cite code data dfn em h1 h2 h3 h4 h5 h6 i kbd label mark meter output p pre
		progress q s samp small span strong sub sup time u var`)

	transparent = words("a audio canvas del ins map noscript object slot video")

	interactive = words("a audio button details embed iframe input label select textarea video")

	headings = words("h1 h2 h3 h4 h5 h6")
)

// implied are the elements a start tag ends without their own end tags.
type implied struct {
	ends   set
	within set // search no further than these
}

var (
	listBoundary  = with(closesParagraph, "td th caption body html template object button svg math", "p")
	tableBoundary = words("table template")
	tableParts    = words("caption colgroup thead tbody tfoot tr td th")
)

// with copies a set, adds some elements and leaves out others.
func with(base set, added, removed string) set {
	s := words(added)
	for name := range base {
		s[name] = true
	}
	for name := range words(removed) {
		delete(s, name)
	}
	return s
}

var impliedEnds = map[string]implied{
	"li":       {words("li"), listBoundary},
	"dt":       {words("dt dd"), listBoundary},
	"dd":       {words("dt dd"), listBoundary},
	"rt":       {words("rt rp"), words("ruby")},
	"rp":       {words("rt rp"), words("ruby")},
	"option":   {words("option"), words("select optgroup datalist")},
	"optgroup": {words("optgroup option"), words("select")},
	"caption":  {words("caption"), tableBoundary},
	"colgroup": {words("caption colgroup"), tableBoundary},
	"col":      {words("caption"), tableBoundary},
	"thead":    {tableParts, tableBoundary},
	"tbody":    {tableParts, tableBoundary},
	"tfoot":    {tableParts, tableBoundary},
	"tr":       {words("caption colgroup tr td th"), words("table thead tbody tfoot template")},
	"td":       {words("td th"), words("tr table template")},
	"th":       {words("td th"), words("tr table template")},
}

// parents are the only places of some elements.
var parents = map[string]set{
	"body":       words("html"),
	"caption":    words("table"),
	"col":        words("colgroup table template"),
	"colgroup":   words("table"),
	"dd":         words("dl div template"),
	"dt":         words("dl div template"),
	"figcaption": words("figure"),
	"head":       words("html"),
	"legend":     words("fieldset optgroup"),
	"li":         words("ul ol menu template"),
	"optgroup":   words("select div"),
	"option":     words("select optgroup datalist div"),
	"rp":         words("ruby"),
	"rt":         words("ruby"),
	"source":     words("picture video audio template"),
	"summary":    words("details"),
	"tbody":      words("table template"),
	"td":         words("tr template"),
	"tfoot":      words("table template"),
	"th":         words("tr template"),
	"thead":      words("table template"),
	"title":      words("head html"),
	"tr":         words("table tbody thead tfoot template"),
	"track":      words("video audio"),
}

// children are the only contents of some elements.
var children = map[string]set{
	"colgroup": words("col template"),
	"dl":       words("dt dd div script template"),
	"hgroup":   words("h1 h2 h3 h4 h5 h6 p script template"),
	"menu":     words("li script template"),
	"ol":       words("li script template"),
	"picture":  words("source img script template"),
	"table":    words("caption colgroup col thead tbody tfoot tr script template"),
	"tbody":    words("tr script template"),
	"tfoot":    words("tr script template"),
	"thead":    words("tr script template"),
	"tr":       words("td th script template"),
	"ul":       words("li script template"),
}

// excluded are the descendants, at any depth, that some elements must not have; what is interactive is judged apart.
var excluded = map[string]set{
	"address":  words("address article aside footer h1 h2 h3 h4 h5 h6 header hgroup nav section"),
	"article":  words("main"),
	"aside":    words("main"),
	"caption":  words("table"),
	"dfn":      words("dfn"),
	"dt":       words("article aside footer h1 h2 h3 h4 h5 h6 header hgroup nav section"),
	"footer":   words("footer header main"),
	"form":     words("form"),
	"header":   words("footer header main"),
	"label":    words("label"),
	"main":     words("main"),
	"meter":    words("meter"),
	"nav":      words("main"),
	"noscript": words("noscript"),
	"progress": words("progress"),
	"th":       words("article aside footer h1 h2 h3 h4 h5 h6 header hgroup nav section"),
}

// alternatives lists elements for a person, "<ol> or <ul>"; scripts and templates, allowed nearly anywhere, are left out.
func alternatives(allowed set) string {
	names := slices.Sorted(maps.Keys(allowed))
	names = slices.DeleteFunc(names, func(name string) bool { return name == "template" || name == "script" })
	list := "<" + strings.Join(names, ">, <") + ">"
	if last := strings.LastIndex(list, ", "); last >= 0 {
		list = list[:last] + " or" + list[last+1:]
	}
	return list
}
