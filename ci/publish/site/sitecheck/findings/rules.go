// Package findings is what a check of a site found, as it is reported: the rules and how grave they are, groups of findings
// with one cause, and which of them are left out because they are ignored or known.
package findings

import (
	"maps"
	"slices"
)

// The rules a finding can name.
const (
	BlockInP         = "block-in-p"
	BrokenLink       = "broken-link"
	DuplicateAttr    = "duplicate-attribute"
	DuplicateID      = "duplicate-id"
	Encoding         = "encoding"
	ForeignRequest   = "foreign-request"
	HeadingOrder     = "heading-order"
	ImgAlt           = "img-alt"
	LinkCase         = "link-case"
	Misnested        = "misnested"
	MissingAnchor    = "missing-anchor"
	Nesting          = "nesting"
	NoDoctype        = "no-doctype"
	NoIndex          = "no-index"
	NoLang           = "no-lang"
	NoTitle          = "no-title"
	ObsoleteElement  = "obsolete-element"
	RedirectedLink   = "redirected-link"
	StrayEndTag      = "stray-end-tag"
	Translation      = "translation"
	TranslationLang  = "translation-lang"
	Unclosed         = "unclosed"
	UnknownElement   = "unknown-element"
	XML              = "xml"
	XMLMissingFields = "xml-fields"
)

// Severity says what a finding means for the site.
type Severity string

const (
	// Error breaks the site for a visitor, and fails the check.
	Error Severity = "error"
	// Warning is worth a look and mostly a theme's, whose templates the site's author does not write.
	Warning Severity = "warning"
)

// severities are all rules. Links, pages, translations and feeds that do not work are errors; what browsers put up with is a
// warning.
var severities = map[string]Severity{
	BrokenLink:      Error,
	Encoding:        Error,
	LinkCase:        Error,
	MissingAnchor:   Error,
	NoIndex:         Error,
	Translation:     Error,
	TranslationLang: Error,
	XML:             Error,

	BlockInP:         Warning,
	DuplicateAttr:    Warning,
	DuplicateID:      Warning,
	ForeignRequest:   Warning, // an error under a strict policy, which refuses the request
	HeadingOrder:     Warning,
	ImgAlt:           Warning,
	Misnested:        Warning,
	Nesting:          Warning,
	NoDoctype:        Warning,
	NoLang:           Warning,
	NoTitle:          Warning,
	ObsoleteElement:  Warning,
	RedirectedLink:   Warning,
	StrayEndTag:      Warning,
	Unclosed:         Warning,
	UnknownElement:   Warning,
	XMLMissingFields: Warning,
}

// severity is a rule's, under a strict Content-Security-Policy or another one.
func severity(rule string, strict bool) Severity {
	if strict && rule == ForeignRequest {
		return Error
	}
	return severities[rule]
}

// Names are the names of all rules, sorted.
func Names() []string { return slices.Sorted(maps.Keys(severities)) }
