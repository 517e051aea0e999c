package secrets

import (
	"strings"

	"tazlab.net/castle/ci/base/redact"
)

// Names whose values are no secret: hiding a user's name such as "git" would spoil every log.
var public = map[string]bool{GitOpsUsername: true, GitOpsCA: true}

// Redactions lists what a log must not show, for a redactor: the values, and of a token "name=key" also the key.
func (v Values) Redactions() []string { return redactions(v.All()) }

// Redact hides the secrets in a text.
func (v Values) Redact(text string) string { return redact.New(v.Redactions()...).Redact(text) }

func redactions(values map[string]string) []string {
	var list []string
	for name, value := range values {
		if public[name] {
			continue
		}
		list = append(list, value)
		if name == ProxmoxAPIToken {
			if _, key, found := strings.Cut(value, "="); found {
				list = append(list, key)
			}
		}
	}
	return list
}
