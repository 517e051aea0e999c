package sitecheck

import (
	"bytes"
	"strings"
)

// cssReference is a URL a stylesheet makes the browser load.
type cssReference struct {
	url  string
	line int    // from 0, relative to the text's start
	from string // "url" or "@import"
}

func readStylesheet(resolver *resolver, document *document, content []byte) {
	references := newReferences(resolver, document)
	references.css(content, 1)
}

// cssReferences finds url(…) and @import "…" outside comments. Other strings are content, not references.
func cssReferences(text []byte) []cssReference {
	if !bytes.Contains(text, []byte("(")) && !bytes.Contains(text, []byte("@")) {
		return nil
	}
	var found []cssReference
	line, counted := 0, 0
	add := func(at int, url, from string) {
		line += bytes.Count(text[counted:at], []byte("\n"))
		counted = at
		found = append(found, cssReference{url: url, line: line, from: from})
	}
	importing := false
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '/' && bytes.HasPrefix(text[i:], []byte("/*")):
			end := bytes.Index(text[i+2:], []byte("*/"))
			if end < 0 {
				return found
			}
			i += 2 + end + 2
		case c == '"' || c == '\'':
			value, length := cssString(text[i:])
			if importing {
				add(i, value, "@import")
				importing = false
			}
			i += length
		case c == ';' || c == '{' || c == '}':
			importing = false
			i++
		case c == '@' && hasPrefixFold(text[i:], "@import"):
			importing = true
			i += len("@import")
		case (c == 'u' || c == 'U') && hasPrefixFold(text[i:], "url("):
			value, length := cssURL(text[i+len("url("):])
			from := "url"
			if importing {
				from, importing = "@import", false
			}
			add(i, value, from)
			i += len("url(") + length
		default:
			i++
		}
	}
	return found
}

// cssURL reads what follows "url(" up to and including the closing parenthesis.
func cssURL(text []byte) (value string, length int) {
	trimmed := bytes.TrimLeft(text, " \t\r\n\f")
	start := len(text) - len(trimmed)
	if len(trimmed) > 0 && (trimmed[0] == '"' || trimmed[0] == '\'') {
		value, quoted := cssString(trimmed)
		end := bytes.IndexByte(trimmed[quoted:], ')')
		if end < 0 {
			return value, len(text)
		}
		return value, start + quoted + end + 1
	}
	var unescaped strings.Builder
	for i := start; i < len(text); i++ {
		switch {
		case text[i] == ')':
			return strings.TrimSpace(unescaped.String()), i + 1
		case text[i] == '\\' && i+1 < len(text):
			i++
		}
		unescaped.WriteByte(text[i])
	}
	return strings.TrimSpace(unescaped.String()), len(text)
}

// cssString reads a quoted string, quotes included in the length.
func cssString(text []byte) (value string, length int) {
	var unescaped strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == text[0]:
			return unescaped.String(), i + 1
		case text[i] == '\\' && i+1 < len(text):
			i++
		}
		unescaped.WriteByte(text[i])
	}
	return unescaped.String(), len(text)
}

func hasPrefixFold(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && bytes.EqualFold(text[:len(prefix)], []byte(prefix))
}
