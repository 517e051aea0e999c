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
// values that have several lines, because logs tear those apart. Values of less than six bytes are left alone, and those of
// less than twelve are taken out where they are whole tokens. It may be used from several goroutines; a nil one redacts nothing.
type Redactor struct {
	mutex  sync.RWMutex
	values map[string]bool
	forms  forms
	ready  *ready // nil until a text is redacted with all forms
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
		r.values, r.forms = map[string]bool{}, forms{}
	}
	for _, value := range values {
		if r.values[value] {
			continue
		}
		r.values[value] = true
		addForms(r.forms, value)
		r.ready = nil
	}
}

// Redact gives the text without the secrets, and without the half of one that it begins or ends with. What cuts texts does so
// afterwards all the same: a short part of a secret is not recognized, and neither is one in the middle.
func (r *Redactor) Redact(text string) string {
	if r == nil || text == "" {
		return text
	}
	ready := r.prepare()
	return ready.ends.redact(redactTokens(ready.replacer.Replace(text), ready.tokens))
}

// ready is what all forms of all values are found with.
type ready struct {
	replacer *strings.Replacer
	tokens   []string
	ends     *ends
}

func (r *Redactor) prepare() *ready {
	r.mutex.RLock()
	known := r.ready
	r.mutex.RUnlock()
	if known != nil {
		return known
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.ready == nil {
		whole := r.forms.found(anywhere)
		r.ready = &ready{replacerOf(whole), r.forms.found(wholeToken), endsOf(whole)}
	}
	return r.ready
}

// forms are the texts that values are known by, and where each is taken out.
type forms map[string]match

// add keeps what takes out more, where two values have the same form.
func (f forms) add(form string, where match) { f[form] = f[form] || where }

// found are the forms that are taken out there, the longest first: a value may be the start of another.
func (f forms) found(where match) []string {
	var list []string
	for form, found := range f {
		if found == where {
			list = append(list, form)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return list
}

// replacerOf takes the first form that fits.
func replacerOf(list []string) *strings.Replacer {
	pairs := make([]string, 0, 2*len(list))
	for _, form := range list {
		pairs = append(pairs, form, Mark)
	}
	return strings.NewReplacer(pairs...)
}
