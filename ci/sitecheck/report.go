package sitecheck

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The rules a finding can name.
const (
	ruleBlockInP         = "block-in-p"
	ruleBrokenLink       = "broken-link"
	ruleDuplicateAttr    = "duplicate-attribute"
	ruleDuplicateID      = "duplicate-id"
	ruleEncoding         = "encoding"
	ruleForeignRequest   = "foreign-request"
	ruleHeadingOrder     = "heading-order"
	ruleImgAlt           = "img-alt"
	ruleLinkCase         = "link-case"
	ruleMisnested        = "misnested"
	ruleMissingAnchor    = "missing-anchor"
	ruleNesting          = "nesting"
	ruleNoCharset        = "no-charset"
	ruleNoDoctype        = "no-doctype"
	ruleNoIndex          = "no-index"
	ruleNoLang           = "no-lang"
	ruleNoTitle          = "no-title"
	ruleObsoleteElement  = "obsolete-element"
	ruleRedirectedLink   = "redirected-link"
	ruleStrayEndTag      = "stray-end-tag"
	ruleTranslation      = "translation"
	ruleTranslationLang  = "translation-lang"
	ruleUnclosed         = "unclosed"
	ruleUnknownElement   = "unknown-element"
	ruleXML              = "xml"
	ruleXMLMissingFields = "xml-fields"
)

// Finding is one thing to mend.
type Finding struct {
	File    string `json:"file"` // relative to the site's folder, with slashes
	Line    int    `json:"line"` // from 1; a minified page is often one line, so the message quotes what it is about
	Rule    string `json:"rule"`
	Message string `json:"message"`           // what is wrong and how to mend it
	Warning bool   `json:"warning,omitempty"` // worth a look, not worth a failure
}

// String is the finding as compilers print theirs, so that editors find the place.
func (f Finding) String() string {
	kind := ""
	if f.Warning {
		kind = "warning: "
	}
	return fmt.Sprintf("%s:%d: %s%s [%s]", f.File, f.Line, kind, f.Message, f.Rule)
}

// Report is the result of a check. Findings are sorted by file, line, rule and message; two checks of the same folder give the
// same report.
type Report struct {
	Pages    int       `json:"pages"` // HTML files read
	Links    int       `json:"links"` // references resolved inside the site
	Findings []Finding `json:"findings"`
}

// Errors counts the findings that are not warnings; a site is in order when it is 0.
func (r Report) Errors() int {
	errors := 0
	for _, finding := range r.Findings {
		if !finding.Warning {
			errors++
		}
	}
	return errors
}

// Text renders the report for a person: one line for each finding and a last line that counts.
func (r Report) Text() string {
	var text strings.Builder
	for _, finding := range r.Findings {
		text.WriteString(finding.String())
		text.WriteByte('\n')
	}
	errors := r.Errors()
	fmt.Fprintf(&text, "%s, %s checked: %s, %s\n", count(r.Pages, "page"), count(r.Links, "link"),
		count(errors, "error"), count(len(r.Findings)-errors, "warning"))
	return text.String()
}

// JSON renders the report for a program, as the struct tags say.
func (r Report) JSON() ([]byte, error) {
	return json.MarshalIndent(r, "", "  ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// sortFindings orders the findings and drops repetitions: the same mistake twice on one line reads as one.
func sortFindings(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.Compact(findings)
}
