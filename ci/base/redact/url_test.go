package redact

import "testing"

func TestURLsLoseTheirUserInformation(t *testing.T) {
	for text, want := range map[string]string{
		"see https://me:pass@example.org/x.git, https://token@example.org:8443/y": "see https://example.org/x.git, https://example.org:8443/y",
		"ssh://git@example.org/x":           "ssh://example.org/x",
		"https://example.org/@scope/x@1.2":  "https://example.org/@scope/x@1.2",
		"https://me:pa/ss@word@example.org": "https://example.org",
		"https://me:p@ss@example.org/x":     "https://example.org/x",
		"git@example.org:x/y":               "git@example.org:x/y",
		"http://localhost:3000/@a":          "http://localhost:3000/@a",
	} {
		if got := URL(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
