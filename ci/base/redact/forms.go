package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	shortestValue = 6  // a shorter one cannot be told from ordinary text
	shortestPart  = 12 // of a value of several lines; shorter ones are its keywords
)

// addForms adds all texts that a value is known by.
func addForms(forms forms, value string) {
	trimmed := strings.TrimSpace(value)
	if len(trimmed) < shortestValue {
		return
	}
	forms.add(value, matchOf(trimmed)) // with the blanks around it
	parts := words(trimmed)
	if len(parts) == 0 {
		parts = []string{trimmed}
	} else {
		encode(forms, trimmed, anywhere) // once: what is encoded twice loses its words, and a cluster's machine secrets are 9 kB
	}
	for _, part := range parts {
		addEncoded(forms, part)
		addKey(forms, part)
	}
}

// addKey adds what a private key is in clear that is kept as PEM in base64, as kubeconfigs and machine secrets have it.
func addKey(forms forms, value string) {
	text, err := base64.StdEncoding.DecodeString(value)
	if block, _ := pem.Decode(text); err == nil && block != nil && strings.HasSuffix(block.Type, "PRIVATE KEY") {
		addForms(forms, string(text))
	}
}

// words are the parts of a value of several lines that are long enough to be a secret by themselves: what stands between
// blanks, and what stands between quotes and commas. The words of a line such as "-----BEGIN PRIVATE KEY-----" are none,
// and neither is a line's first word with a colon at its end, which is a name. Each is named once.
func words(value string) []string {
	if !strings.Contains(value, "\n") {
		return nil
	}
	var list []string
	for line := range strings.Lines(value) {
		list = append(list, wordsOf(strings.TrimSpace(line))...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func wordsOf(line string) []string {
	const dashes = "-----"
	marker := strings.HasPrefix(line, dashes)
	var list []string
	add := func(word string) {
		if len(word) >= shortestPart {
			list = append(list, word)
		}
	}
	for i, word := range strings.Fields(strings.TrimPrefix(line, "- ")) {
		word = strings.Trim(word, `"',`)
		if i == 0 && strings.HasSuffix(word, ":") || marker && strings.Contains(word, dashes) {
			continue
		}
		add(word)
		for _, part := range strings.FieldsFunc(word, func(c rune) bool { return strings.ContainsRune(`"',`, c) }) {
			add(part)
		}
	}
	return list
}

// addEncoded adds a value, its forms, and their forms: an answer's body in JSON is quoted once more by the log that shows
// it, and a header's base64 is put into a URL. Two are enough, and each further one would multiply their number by the
// number of encodings. Of a value that no encoding but base64 and hexadecimal changes, most forms are the same.
func addEncoded(known forms, value string) {
	first := forms{}
	encode(first, value, matchOf(value))
	for form, where := range first {
		known.add(form, where)
		if form != value {
			encode(known, form, where)
		}
	}
}

// encode adds how a value looks when it is encoded, alone or within a longer text, and where it is taken out in clear.
func encode(forms forms, value string, where match) {
	add := func(list ...string) {
		for _, form := range list {
			forms.add(form, where)
		}
	}
	add(value)
	if strings.ContainsFunc(value, quoted) {
		add(inJSON(value, true), inJSON(value, false), inGo(value), inYAML(value), strings.ReplaceAll(value, "'", "''"))
	}
	if strings.ContainsFunc(value, reserved) {
		for _, form := range inURL(value) {
			add(form, lowerPercent(form))
		}
	}
	where = anywhere // what follows is no word
	inHex := hex.EncodeToString([]byte(value))
	add(inHex, strings.ToUpper(inHex))
	add(base64.StdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)))
	add(inBase64(value)...)
}

// quoted tells of a character that is not always itself between quotes. The check saves most of the time that forms take.
func quoted(c rune) bool {
	switch c {
	case '"', '\'', '\\', '<', '>', '&':
		return true
	}
	return c < ' ' || c > '~'
}

// reserved is the same for URLs.
func reserved(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.')
}

// inJSON is the value with or without <, > and & written as \u003c, \u003e and \u0026, which encoders have an option for.
func inJSON(value string, html bool) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(html)
	if err := encoder.Encode(value); err != nil {
		panic(err) // every text has a form in JSON
	}
	return unquoted(strings.TrimSuffix(text.String(), "\n"))
}

// inGo is the value as %q shows it.
func inGo(value string) string { return unquoted(strconv.Quote(value)) }

// beyondGo are characters that YAML writes in other ways than Go.
var beyondGo = regexp.MustCompile(`[^ -~\n\r\t]`)

// inYAML is the value in YAML's double quotes.
func inYAML(value string) string {
	if !beyondGo.MatchString(value) {
		return inGo(value) // a hundred times as fast as the library, which counts where a value has many forms
	}
	text, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: value})
	if err != nil || text[0] != '"' {
		return value // it is no UTF-8, which YAML has in base64
	}
	return unquoted(strings.TrimSuffix(string(text), "\n"))
}

func unquoted(text string) string { return text[1 : len(text)-1] }

// inURL is the value in a query, in a path and as a password; each leaves other characters as they are.
func inURL(value string) []string {
	password := strings.TrimPrefix(url.UserPassword("", value).String(), ":")
	return []string{url.QueryEscape(value), url.PathEscape(value), password}
}

// lowerPercent has %2f for %2F.
func lowerPercent(escaped string) string {
	parts := strings.Split(escaped, "%")
	for i, part := range parts[1:] {
		parts[i+1] = strings.ToLower(part[:2]) + part[2:]
	}
	return strings.Join(parts, "%")
}

// inBase64 is how a value looks within a longer text. There it starts at the first, second or third byte of a group of
// three; the characters at both ends then hold bits of its neighbours and are left out.
func inBase64(value string) []string {
	var list []string
	longest := append(make([]byte, 2), value...)
	for before := range 3 {
		padded := longest[2-before:]
		first := (before*8 + 5) / 6
		last := len(padded) * 8 / 6
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			list = append(list, encoding.EncodeToString(padded)[first:last])
		}
	}
	return list
}
