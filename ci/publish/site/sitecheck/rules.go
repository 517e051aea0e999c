package sitecheck

import (
	"maps"
	"slices"
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
	ruleBrokenLink:      Error,
	ruleEncoding:        Error,
	ruleLinkCase:        Error,
	ruleMissingAnchor:   Error,
	ruleNoIndex:         Error,
	ruleTranslation:     Error,
	ruleTranslationLang: Error,
	ruleXML:             Error,

	ruleBlockInP:         Warning,
	ruleDuplicateAttr:    Warning,
	ruleDuplicateID:      Warning,
	ruleForeignRequest:   Warning, // an error under a strict policy, which refuses the request
	ruleHeadingOrder:     Warning,
	ruleImgAlt:           Warning,
	ruleMisnested:        Warning,
	ruleNesting:          Warning,
	ruleNoDoctype:        Warning,
	ruleNoLang:           Warning,
	ruleNoTitle:          Warning,
	ruleObsoleteElement:  Warning,
	ruleRedirectedLink:   Warning,
	ruleStrayEndTag:      Warning,
	ruleUnclosed:         Warning,
	ruleUnknownElement:   Warning,
	ruleXMLMissingFields: Warning,
}

// severity is a rule's, under a strict Content-Security-Policy or another one.
func severity(rule string, strict bool) Severity {
	if strict && rule == ruleForeignRequest {
		return Error
	}
	return severities[rule]
}

func ruleNames() []string { return slices.Sorted(maps.Keys(severities)) }
