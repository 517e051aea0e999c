package timeline

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Redacted stands where a secret stood.
const Redacted = "[redacted]"

const (
	shortestValue = 6  // shorter ones are names such as "git", which occur everywhere
	shortestPart  = 16 // of a value of several lines; shorter ones are its keywords
)

// Redactor takes secrets out of texts: the values themselves, how they look in JSON, URLs and base64 (also within a longer
// text, such as "user:password"), and the long words of values that have several lines, because logs tear those apart.
// Values of less than six bytes are left alone. It may be used from several goroutines; a nil one redacts nothing.
type Redactor struct {
	mutex    sync.RWMutex
	forms    []string
	replacer *strings.Replacer
}

// NewRedactor knows the given values from the start.
func NewRedactor(values ...string) *Redactor {
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
		pairs = append(pairs, form, Redacted)
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

func (r *Redactor) event(e Event) Event {
	for _, text := range []*string{&e.Cluster, &e.Layer, &e.Name, &e.Cause, &e.Next} {
		*text = r.Redact(*text)
	}
	return e
}

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
		for _, word := range strings.FieldsFunc(trimmed, func(c rune) bool { return strings.ContainsRune(" \t\r\n\"',", c) }) {
			if len(word) >= shortestPart && !strings.Contains(word, "-----") {
				list = append(list, encoded(word)...)
			}
		}
	}
	return list
}

func encoded(value string) []string {
	list := []string{value, url.QueryEscape(value), url.PathEscape(value)}
	if text, err := json.Marshal(value); err == nil {
		list = append(list, string(text[1:len(text)-1]))
	}
	// Within a longer text a value starts at the first, second or third byte of a group of three; the characters at both
	// ends then hold bits of its neighbours and are left out.
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
