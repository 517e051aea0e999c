package sitecheck

import (
	"strings"

	"tazlab.net/castle/ci/publish/site/sitecheck/rules"
)

// tree follows the open elements of a page and reports what is not closed, closed in the wrong order or in a place where it
// may not be. It holds the stack only, never the whole page.
type tree struct {
	document *document
	open     []element
	// unclosed are the findings of elements whose end tag had not come when their parent ended, by name. Should it come
	// after all, the two tags were crossed, and the finding says that instead.
	unclosed map[string]int
	// paragraph is the last one that a block element ended, for the end tag that may still come.
	paragraph struct {
		line, endedAt int
		by            string
	}
}

type element struct {
	name    string
	line    int
	foreign bool // SVG or MathML, whose own mistakes browsers do not mind
	hidden  bool // by itself or by what is around it, from those who have the page read to them
}

// startTag is what the tree needs to know of a start tag.
type startTag struct {
	name        string
	line        int
	selfClosing bool
	interactive bool // what a visitor can click, which for some elements their attributes decide
	hidden      bool
}

// htmlInside are the foreign elements that hold HTML again.
var htmlInside = words("foreignobject desc title annotation-xml")

func newTree(document *document) *tree {
	return &tree{document: document, unclosed: map[string]int{}}
}

func (t *tree) top() element {
	if len(t.open) == 0 {
		return element{}
	}
	return t.open[len(t.open)-1]
}

// inForeign reports whether the next tag belongs to SVG or MathML.
func (t *tree) inForeign() bool {
	top := t.top()
	return top.foreign && !htmlInside[top.name]
}

// start takes a start tag.
func (t *tree) start(tag startTag) {
	name, line := tag.name, tag.line
	if t.inForeign() {
		if !tag.selfClosing {
			t.push(tag, true)
		}
		return
	}
	t.leaveHead(name)
	t.endImplied(name, line)
	blockInParagraph := closesParagraph[name] && t.endParagraph(name, line)
	switch {
	case obsoleteElements[name]:
		t.document.add(line, rules.ObsoleteElement, "<"+name+">", "<%s> is obsolete: use CSS or a current element", name)
	case !knownElements[name] && !strings.Contains(name, "-"):
		t.document.add(line, rules.UnknownElement, "<"+name+">", "<%s> is no HTML element: correct the name", name)
	case !blockInParagraph:
		t.checkPlace(name, line, tag.interactive)
	}
	foreign := name == "svg" || name == "math"
	if voidElements[name] {
		return
	}
	if tag.selfClosing {
		if !foreign {
			t.document.add(line, rules.Unclosed, "<"+name+"/>", "<%s/> does not close itself in HTML: write <%s></%s>", name, name, name)
		}
		return
	}
	t.push(tag, foreign)
}

func (t *tree) push(tag startTag, foreign bool) {
	t.open = append(t.open, element{tag.name, tag.line, foreign, tag.hidden || t.top().hidden})
}

// text takes text that is not white space.
func (t *tree) text() {
	t.leaveHead("")
}

// leaveHead ends an open head at the first thing that cannot be in it.
func (t *tree) leaveHead(name string) {
	if t.top().name == "head" && !headContent[name] {
		t.open = t.open[:len(t.open)-1]
	}
}

// endImplied closes the siblings whose end tags were left out.
func (t *tree) endImplied(name string, line int) {
	rule, ok := impliedEnds[name]
	if !ok {
		return
	}
	last := -1
	for i := len(t.open) - 1; i >= 0 && !rule.within[t.open[i].name]; i-- {
		if rule.ends[t.open[i].name] {
			last = i
		}
	}
	if last >= 0 {
		t.pop(last, "<"+name+">", line)
	}
}

// endParagraph closes a paragraph before a block element, and reports whether it could not, which is a finding.
func (t *tree) endParagraph(name string, line int) bool {
	for i := len(t.open) - 1; i >= 0 && !paragraphScope[t.open[i].name]; i-- {
		if t.open[i].name != "p" {
			continue
		}
		if i == len(t.open)-1 {
			t.paragraph.line, t.paragraph.endedAt, t.paragraph.by = t.open[i].line, line, name
			t.open = t.open[:i]
			return false
		}
		t.document.add(line, rules.BlockInP, "<"+name+"> inside <p>", "<%s> inside the <p> of line %d: a paragraph holds text only; close it first",
			name, t.open[i].line)
		return true
	}
	return false
}

// pop closes the element at index last and everything inside it, because of the given tag, or of the
// end of the page where that is empty.
func (t *tree) pop(last int, tag string, line int) {
	for i := len(t.open) - 1; i > last; i-- {
		inner := t.open[i]
		if inner.foreign {
			continue
		}
		if endTagOptional[inner.name] {
			parent := t.open[i-1].name
			if inner.name != "p" || !keepsParagraphOpen[parent] && !strings.Contains(parent, "-") {
				continue
			}
		}
		t.unclosed[inner.name] = len(t.document.findings)
		if tag == "" {
			t.document.add(inner.line, rules.Unclosed, "<"+inner.name+"> at the end of the page", "<%s> is still open at the end of the page: close it", inner.name)
			continue
		}
		t.document.add(inner.line, rules.Unclosed, "<"+inner.name+"> at the "+tag, "<%s> is still open at the %s of line %d: close it before", inner.name, tag, line)
	}
	t.open = t.open[:last]
}

func (t *tree) end(name string, line int) {
	if voidElements[name] && !t.inForeign() {
		t.document.add(line, rules.StrayEndTag, "</"+name+">", "</%s>: this element has no end tag; remove it", name)
		return
	}
	for i := len(t.open) - 1; i >= 0; i-- {
		candidate := t.open[i].name
		if candidate == name {
			t.pop(i, "</"+name+">", line)
			return
		}
		if candidate == "template" || candidate == "table" && tableParts[name] ||
			(candidate == "td" || candidate == "th" || candidate == "caption") && name != "table" && !tableParts[name] {
			break
		}
	}
	if !t.inForeign() {
		t.stray(name, line)
	}
}

// stray explains an end tag that closes nothing.
func (t *tree) stray(name string, line int) {
	if index, ok := t.unclosed[name]; ok {
		delete(t.unclosed, name)
		finding := &t.document.findings[index]
		finding.Rule = rules.Misnested
		finding.Cause = "<" + name + ">"
		finding.Message = "<" + name + "> is closed after the element around it: close the inner one first"
		return
	}
	if name == "p" && t.paragraph.by != "" {
		t.document.add(t.paragraph.endedAt, rules.BlockInP, "<"+t.paragraph.by+"> inside <p>",
			"<%s> inside the <p> of line %d: a paragraph holds text only; close it first", t.paragraph.by, t.paragraph.line)
		t.paragraph.by = ""
		return
	}
	t.document.add(line, rules.StrayEndTag, "</"+name+">", "</%s> closes nothing: remove it, or open <%s> where it belongs", name, name)
}

// finish ends the page.
func (t *tree) finish() {
	t.open = append([]element{{}}, t.open...)
	t.pop(0, "", 0)
}

// checkPlace reports at most one reason why an element may not be where it is.
func (t *tree) checkPlace(name string, line int, isInteractive bool) {
	misplaced := func(where, format string, arguments ...any) {
		t.document.add(line, rules.Nesting, "<"+name+"> "+where, format, arguments...)
	}
	parent := t.top().name
	if allowed, limited := parents[name]; limited && !allowed[parent] && (parent != "" || name != "head" && name != "body" && name != "title") {
		misplaced(inside(parent), "<%s> %s: it belongs into %s", name, inside(parent), alternatives(allowed))
		return
	}
	if allowed, limited := children[parent]; limited && !allowed[name] {
		misplaced(inside(parent), "<%s> %s, which holds only %s: move it", name, inside(parent), alternatives(allowed))
		return
	}
	contentDecided := !closesParagraph[name]
	for i := len(t.open) - 1; i >= 0; i-- {
		outer := t.open[i]
		switch {
		case outer.name == "template":
			return
		case excluded[outer.name][name]:
			misplaced("inside <"+outer.name+">", "<%s> inside the <%s> of line %d: move it out", name, outer.name, outer.line)
			return
		case isInteractive && (outer.name == "a" || outer.name == "button"):
			misplaced("inside <"+outer.name+">", "<%s> inside the <%s> of line %d: what can be clicked must not hold what can be clicked", name, outer.name, outer.line)
			return
		}
		if contentDecided || transparent[outer.name] {
			continue
		}
		contentDecided = true
		if phrasingOnly[outer.name] && outer.name != "p" { // a block in a paragraph is block-in-p
			misplaced("inside <"+outer.name+">", "<%s> inside the <%s> of line %d, which holds text only: move it out or use a <span>", name, outer.name, outer.line)
			return
		}
	}
}

func inside(parent string) string {
	if parent == "" {
		return "at the top of the page"
	}
	return "directly inside <" + parent + ">"
}
