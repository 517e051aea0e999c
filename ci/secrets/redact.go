package secrets

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// hidden stands for a secret in a redacted text.
const hidden = "[hidden]"

// Names whose values are no secret: hiding a user's name such as "git" would spoil every log.
var public = map[string]bool{GitOpsUsername: true, GitOpsCA: true}

const (
	minWhole = 6  // a shorter value cannot be told from ordinary text
	minPart  = 12 // of a word in a value of several lines
)

// Redactions lists every text that a log must not show, the longest first: the values; the words of values of several
// lines, since logs come by the line; the part of a token after "="; and each as JSON and base64 would show it.
func (v Values) Redactions() []string { return redactions(v.All()) }

// Redact hides the secrets in a text.
func (v Values) Redact(text string) string { return newRedactor(v.All())(text) }

func newRedactor(values map[string]string) func(string) string {
	var pairs []string
	for _, text := range redactions(values) {
		pairs = append(pairs, text, hidden)
	}
	return strings.NewReplacer(pairs...).Replace
}

func redactions(values map[string]string) []string {
	texts := map[string]bool{}
	add := func(text string, min int) {
		if len(text) < min {
			return
		}
		texts[text] = true
		if quoted, err := json.Marshal(text); err == nil {
			texts[strings.Trim(string(quoted), `"`)] = true
		}
		texts[base64.StdEncoding.EncodeToString([]byte(text))] = true
		texts[base64.RawURLEncoding.EncodeToString([]byte(text))] = true
	}
	for name, value := range values {
		if public[name] {
			continue
		}
		value = strings.TrimSpace(value)
		add(value, minWhole)
		if name == ProxmoxAPIToken {
			if _, key, found := strings.Cut(value, "="); found {
				add(key, minPart)
			}
		}
		if !strings.Contains(value, "\n") {
			continue
		}
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "-----") || strings.HasPrefix(line, "#") {
				continue
			}
			for _, word := range strings.Fields(line) {
				if word = strings.Trim(word, `"',`); !strings.HasSuffix(word, ":") {
					add(word, minPart)
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
}
