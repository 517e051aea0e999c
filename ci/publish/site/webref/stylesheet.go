package webref

import (
	"bytes"
	"strings"
)

// Use is what a stylesheet loads a URL as.
type Use int

const (
	Picture Use = iota // url(…) anywhere but below
	Font               // url(…) in an @font-face rule
	Import             // @import: a stylesheet
)

// Reference is a URL that a stylesheet makes the browser load.
type Reference struct {
	URL  string
	Line int // from 0, relative to the text's start
	Use  Use
}

// Stylesheet finds url(…) and @import "…" outside comments, in the text of a stylesheet, a style element or a style
// attribute. Other strings are content, not references, and so is the name of a namespace.
func Stylesheet(text []byte) []Reference {
	if !bytes.Contains(text, []byte("(")) && !bytes.Contains(text, []byte("@")) {
		return nil
	}
	var found []Reference
	line, counted := 0, 0
	rule := "" // the at-rule that we are in the head or the block of, of those that matter here
	add := func(at int, url string) {
		line += bytes.Count(text[counted:at], []byte("\n"))
		counted = at
		use := Picture
		switch rule {
		case "@namespace":
			return
		case "@import":
			use, rule = Import, ""
		case "@font-face":
			use = Font
		}
		found = append(found, Reference{URL: url, Line: line, Use: use})
	}
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
			if rule == "@import" {
				add(i, value)
			}
			i += length
		case c == '}' || rule != "@font-face" && (c == ';' || c == '{'):
			rule = ""
			i++
		case c == '@':
			rule = atRule(text[i:])
			i += max(1, len(rule))
		case (c == 'u' || c == 'U') && hasPrefixFold(text[i:], "url("):
			value, length := cssURL(text[i+len("url("):])
			add(i, value)
			i += len("url(") + length
		default:
			i++
		}
	}
	return found
}

// atRule returns the at-rule that the text begins with, when it is one that says what a URL in it is.
func atRule(text []byte) string {
	for _, name := range []string{"@import", "@font-face", "@namespace"} {
		if hasPrefixFold(text, name) {
			return name
		}
	}
	return ""
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
