package sitesettle

import (
	"path"
	"strings"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// keyOf is the path that Hugo keeps a page under: two spellings of a term with the same key are one page. Source:
// NormalizePathStringBasic in common/paths/pathparser.go of Hugo v0.165.0.
func keyOf(parts ...string) string {
	return "/" + strings.ReplaceAll(strings.ToLower(strings.Join(parts, "/")), " ", "-")
}

// isPath reports whether a key is the path of a page as it stands. A term such as "a//b" makes a page whose path cannot be
// given to a page by name.
func isPath(key string) bool { return path.Clean(key) == key }

// addressOf is where a term's page is published, without a language: two pages with the same address are one file. Source:
// createTargetPathDescriptor in hugolib/page__paths.go and MakePathSanitized in helpers/path.go of Hugo v0.165.0.
func (s *site) addressOf(t term) string {
	page := t.key
	if s.keepCase {
		page = "/" + t.plural + "/" + t.title()
	}
	page = sanitized(page)
	if s.removeAccents {
		page, _, _ = transform.String(transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn)), norm.NFC), page)
	}
	return page
}

// sanitized leaves out what an address does not have, and puts a hyphen for spaces. Source: Sanitize in common/paths/path.go of
// Hugo v0.165.0.
func sanitized(text string) string {
	var kept []rune
	spaces, hyphen := false, false
	for i, r := range text {
		switch {
		case isAllowed(text, i, r):
			hyphen = r == '-'
			if spaces && !hyphen {
				kept = append(kept, '-')
			}
			spaces = false
			kept = append(kept, r)
		case len(kept) > 0 && !hyphen && unicode.IsSpace(r):
			spaces = true
		}
	}
	return string(kept)
}

func isAllowed(text string, i int, r rune) bool {
	return unicode.In(r, unicode.Letter, unicode.Digit, unicode.Mark) || strings.ContainsRune(`./\_#+~-@`, r) ||
		r == '%' && i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2])
}

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }
