// Package rules is the table of what a check of a site finds, and how grave it is.
package rules

import (
	"maps"
	"slices"

	"tazlab.net/castle/ci/base/findings"
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

// severities are all rules. Links, pages, translations and feeds that do not work are errors; what browsers put up with is a
// warning.
var severities = map[string]findings.Severity{
	BrokenLink:      findings.Error,
	Encoding:        findings.Error,
	LinkCase:        findings.Error,
	MissingAnchor:   findings.Error,
	NoIndex:         findings.Error,
	Translation:     findings.Error,
	TranslationLang: findings.Error,
	XML:             findings.Error,

	BlockInP:         findings.Warning,
	DuplicateAttr:    findings.Warning,
	DuplicateID:      findings.Warning,
	ForeignRequest:   findings.Warning, // an error under a strict policy, which refuses the request
	HeadingOrder:     findings.Warning,
	ImgAlt:           findings.Warning,
	Misnested:        findings.Warning,
	Nesting:          findings.Warning,
	NoDoctype:        findings.Warning,
	NoLang:           findings.Warning,
	NoTitle:          findings.Warning,
	ObsoleteElement:  findings.Warning,
	RedirectedLink:   findings.Warning,
	StrayEndTag:      findings.Warning,
	Unclosed:         findings.Warning,
	UnknownElement:   findings.Warning,
	XMLMissingFields: findings.Warning,
}

// Severity is that of each rule, under a strict Content-Security-Policy or another one: an error breaks the site for a
// visitor; a warning is mostly a theme's, whose templates the site's author does not write.
func Severity(strict bool) func(rule string) findings.Severity {
	return func(rule string) findings.Severity {
		if strict && rule == ForeignRequest {
			return findings.Error
		}
		return severities[rule]
	}
}

// Names are the names of all rules, sorted.
func Names() []string { return slices.Sorted(maps.Keys(severities)) }
