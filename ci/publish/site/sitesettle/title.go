package sitesettle

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jdkato/prose/transform"
)

// titleCase is what Hugo writes titles with in one of its styles. It is done by the same library, since the title must be the
// same. Source: GetTitleFunc in helpers/general.go of Hugo v0.165.0.
func titleCase(style string) func(string) string {
	switch strings.ToLower(style) {
	case "go":
		//lint:ignore SA1019 it is what Hugo calls
		return strings.Title
	case "chicago":
		return transform.NewTitleConverter(transform.ChicagoStyle).Title
	case "none":
		return func(text string) string { return text }
	case "firstupper":
		return func(text string) string {
			first, size := utf8.DecodeRuneInString(text)
			return string(unicode.ToUpper(first)) + text[size:]
		}
	default:
		return transform.NewTitleConverter(transform.APStyle).Title
	}
}
