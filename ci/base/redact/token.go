package redact

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shortestAnywhere is how long a value is that is taken out wherever it stands. A shorter one may be a part of ordinary words, as
// docker is of docker.io: of it and of how it is quoted only whole tokens are taken out. Base64 and hexadecimal are no words.
const shortestAnywhere = 12

// match says where in a text a form is taken out.
type match bool

const (
	anywhere   match = true
	wholeToken match = false
)

func matchOf(value string) match { return match(len(value) >= shortestAnywhere) }

// redactTokens takes out the forms where they are whole tokens.
func redactTokens(text string, forms []string) string {
	for _, form := range forms {
		if !strings.Contains(text, form) {
			continue
		}
		var b strings.Builder
		from := 0
		for {
			at := strings.Index(text[from:], form)
			if at < 0 {
				break
			}
			at += from
			end := at + len(form)
			if !isToken(text, at, end) {
				_, size := utf8.DecodeRuneInString(text[at:])
				b.WriteString(text[from : at+size])
				from = at + size
				continue
			}
			b.WriteString(text[from:at] + Mark)
			from = end
		}
		text = b.String() + text[from:]
	}
	return text
}

// isToken tells whether no word goes on before or behind a part of a text.
func isToken(text string, at, end int) bool {
	first, _ := utf8.DecodeRuneInString(text[at:])
	last, _ := utf8.DecodeLastRuneInString(text[:end])
	return !(inWord(first) && wordBefore(text[:at])) && !(inWord(last) && wordAfter(text[end:]))
}

func inWord(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' }

// joins are signs that make one word of two, as in docker.io; at the end of a sentence they do not.
func joins(c rune) bool { return c == '-' || c == '.' }

// escaped is what ends in a letter or digit and is no word: a sign in JSON, Go, YAML or a URL, and a terminal's color.
var escaped = regexp.MustCompile(`(?:\\(?:[a-zA-Z]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|%(?:25)*[0-9a-fA-F]{2}|\x1b\[[0-9;]*[a-zA-Z])$`)

func wordBefore(text string) bool {
	if escaped.MatchString(text[max(0, len(text)-longestEscape):]) {
		return false
	}
	c, size := utf8.DecodeLastRuneInString(text)
	if joins(c) {
		c, _ = utf8.DecodeLastRuneInString(text[:len(text)-size])
	}
	return inWord(c)
}

const longestEscape = 24

func wordAfter(text string) bool {
	c, size := utf8.DecodeRuneInString(text)
	if joins(c) {
		c, _ = utf8.DecodeRuneInString(text[size:])
	}
	return inWord(c)
}
