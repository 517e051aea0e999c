// Package redact takes secrets out of texts that are shown or kept.
package redact

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Mark stands where a secret stood.
const Mark = "[redacted]"

// Redactor takes secrets out of texts: the values themselves, how they look in JSON, YAML, Go's %q, URLs, base64 and
// hexadecimal (also within a longer text, such as "user:password", and one form within another), and the long words of
// values that have several lines, because logs tear those apart. Values of less than six bytes are left alone. It may be
// used from several goroutines; a nil one redacts nothing.
type Redactor struct {
	mutex    sync.RWMutex
	values   map[string]bool
	forms    map[string]bool
	replacer *strings.Replacer // nil until a text is redacted with all forms
}

// New knows the given values from the start.
func New(values ...string) *Redactor {
	r := &Redactor{}
	r.Add(values...)
	return r
}

// Add makes more values known. One that is known already costs nothing.
func (r *Redactor) Add(values ...string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.values == nil {
		r.values, r.forms = map[string]bool{}, map[string]bool{}
	}
	for _, value := range values {
		if r.values[value] {
			continue
		}
		r.values[value] = true
		addForms(r.forms, value)
		r.replacer = nil
	}
}

// Redact gives the text without the secrets. What cuts texts does so afterwards: half a secret is not recognized.
func (r *Redactor) Redact(text string) string {
	if r == nil || text == "" {
		return text
	}
	return r.ready().Replace(text)
}

// ready is the replacer of all forms.
func (r *Redactor) ready() *strings.Replacer {
	r.mutex.RLock()
	replacer := r.replacer
	r.mutex.RUnlock()
	if replacer != nil {
		return replacer
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.replacer == nil {
		r.replacer = replacerOf(r.forms)
	}
	return r.replacer
}

func replacerOf(forms map[string]bool) *strings.Replacer {
	list := make([]string, 0, len(forms))
	for form := range forms {
		list = append(list, form)
	}
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Compare(len(b), len(a)) // the replacer takes the first that fits, and a value may be the start of another
	})
	pairs := make([]string, 0, 2*len(list))
	for _, form := range list {
		pairs = append(pairs, form, Mark)
	}
	return strings.NewReplacer(pairs...)
}
