// Package redact takes secrets out of texts that are shown or kept.
package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Mark stands where a secret stood.
const Mark = "[redacted]"

const (
	shortestValue = 6  // a shorter one cannot be told from ordinary text
	shortestPart  = 12 // of a value of several lines; shorter ones are its keywords
)

// Redactor takes secrets out of texts: the values themselves, how they look in JSON, URLs and base64 (also within a longer
// text, such as "user:password", and one form within another), and the long words of values that have several lines,
// because logs tear those apart. Values of less than six bytes are left alone. It may be used from several goroutines; a
// nil one redacts nothing.
type Redactor struct {
	mutex    sync.RWMutex
	forms    []string
	replacer *strings.Replacer
}

// New knows the given values from the start.
func New(values ...string) *Redactor {
	r := &Redactor{}
	r.Add(values...)
	return r
}

// Add makes more values known.
func (r *Redactor) Add(values ...string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, value := range values {
		r.forms = append(r.forms, forms(value)...)
	}
	slices.SortFunc(r.forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a) // the replacer takes the first that fits, and a value may be the start of another
		}
		return strings.Compare(a, b)
	})
	r.forms = slices.Compact(r.forms)
	pairs := make([]string, 0, 2*len(r.forms))
	for _, form := range r.forms {
		pairs = append(pairs, form, Mark)
	}
	r.replacer = strings.NewReplacer(pairs...)
}

// Redact gives the text without the secrets.
func (r *Redactor) Redact(text string) string {
	if r == nil || text == "" {
		return text
	}
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	return r.replacer.Replace(text)
}

// forms are all texts that a value is known by.
func forms(value string) []string {
	trimmed := strings.TrimSpace(value)
	if len(trimmed) < shortestValue {
		return nil
	}
	list := encoded(trimmed)
	if trimmed != value {
		list = append(list, value)
	}
	if strings.Contains(trimmed, "\n") {
		for line := range strings.Lines(trimmed) {
			for _, word := range words(strings.TrimSpace(line)) {
				list = append(list, encoded(word)...)
			}
		}
	}
	return list
}

// words are the parts of a line that are long enough to be a secret by themselves: what stands between blanks, and what
// stands between quotes and commas. The words of a line such as "-----BEGIN PRIVATE KEY-----" are none, and neither is a
// line's first word with a colon at its end, which is a name.
func words(line string) []string {
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

// encoded are a value's forms, and the forms of those that are themselves put into JSON, URLs and base64.
func encoded(value string) []string {
	whole := []string{value, inJSON(value), base64.StdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value))}
	list := []string{value}
	for _, form := range whole {
		list = append(list, inJSON(form), url.QueryEscape(form), url.PathEscape(form))
		list = append(list, inBase64(form)...)
	}
	return list
}

func inJSON(value string) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // every text has a form in JSON
	}
	return string(text[1 : len(text)-1])
}

// inBase64 is how a value looks within a longer text. There it starts at the first, second or third byte of a group of
// three; the characters at both ends then hold bits of its neighbours and are left out.
func inBase64(value string) []string {
	var list []string
	for before := range 3 {
		padded := append(make([]byte, before), value...)
		first := (before*8 + 5) / 6
		last := len(padded) * 8 / 6
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			list = append(list, encoding.EncodeToString(padded)[first:last])
		}
	}
	return list
}
