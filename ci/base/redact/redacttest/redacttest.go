// Package redacttest has secrets for tests, and the texts in which they turn up.
package redacttest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The secrets: one of a line, and two of several.
const (
	Token = `ghp/Canary"7f3a+9c1d=e5<'&>`
	Key   = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEICanaryCanaryCanary\nQ2FuYXJ5Q2FuYXJ5Q2FuYXJ5Cg==\n-----END PRIVATE KEY-----\n"
	YAML  = "cluster:\n    id: 0Xk3CanaryCanary9\n    secret: 'w7CanaryCanaryQ=='\n    # was: oldCanary7f3a\n"
)

// Leaks are the ways in which the secrets come to be in texts.
func Leaks(t testing.TB) map[string]string {
	t.Helper()
	quoted := inJSON(t, Token)
	return map[string]string{
		"plain":                  "token " + Token + " refused",
		"in JSON":                `{"token":` + quoted + `}`,
		"JSON in JSON":           `{"body":` + inJSON(t, `{"token":`+quoted+`}`) + `}`,
		"in a URL":               "https://git:" + url.PathEscape(Token) + "@host/x?t=" + url.QueryEscape(Token),
		"base64":                 base64.StdEncoding.EncodeToString([]byte(Token)),
		"base64 for URLs":        base64.RawURLEncoding.EncodeToString([]byte(Token)),
		"base64 of base64":       "data: " + base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(Token)))),
		"in JSON, < as it is":    `{"token":` + inPlainJSON(t, Token) + `}`,
		"in Go's quotes":         fmt.Sprintf("token %q refused", Token),
		"in YAML's quotes":       "token: '" + strings.ReplaceAll(Token, "'", "''") + "'",
		"in YAML's other quotes": "token: " + inYAML(t, Token),
		"as a URL's password":    (&url.URL{Scheme: "https", User: url.UserPassword("git", Token), Host: "host"}).String(),
		"in a lower-case URL":    lowerPercent("https://git:" + url.PathEscape(Token) + "@host/x?t=" + url.QueryEscape(Token)),
		"hexadecimal":            fmt.Sprintf("%x", "git:"+Token),
		"HEXADECIMAL":            fmt.Sprintf("%X", "git:"+Token),
		"quotes in JSON":         `{"error":` + inPlainJSON(t, fmt.Sprintf("%q", Token)) + `}`,
		"basic in a URL":         lowerPercent("?a=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("git:"+Token)))),
		"hexadecimal as data":    base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "git:%x", Token)),
		"basic authentication":   "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("git:"+Token)),
		"basic, longer name":     "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("flux-"+Token+"x")),
		"a key's line":           "read key: MC4CAQAwBQYDK2VwBCIEICanaryCanaryCanary: bad",
		"a key in JSON":          `{"key":"` + strings.ReplaceAll(Key, "\n", `\n`) + `"}`,
		"a key as data":          base64.StdEncoding.EncodeToString([]byte(Key)),
		"a value of the YAML":    "secret w7CanaryCanaryQ== is no base64",
		"an id of the YAML":      "cluster 0Xk3CanaryCanary9",
		"a comment of the YAML":  "cluster oldCanary7f3a",
		"the last line of a key": "Q2FuYXJ5Q2FuYXJ5Q2FuYXJ5Cg==",
	}
}

func inPlainJSON(t testing.TB, text string) string {
	t.Helper()
	var quoted strings.Builder
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(quoted.String())
}

func inYAML(t testing.TB, text string) string {
	t.Helper()
	quoted, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: text})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(quoted))
}

func lowerPercent(text string) string {
	return strings.NewReplacer("%2F", "%2f", "%2B", "%2b", "%3D", "%3d", "%3C", "%3c", "%3E", "%3e").Replace(text)
}

func inJSON(t testing.TB, text string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}

// Found lists what of the secrets is still in a text.
func Found(text string) []string {
	var found []string
	twice := base64.RawStdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(Token))))
	for _, form := range []string{
		"Canary", base64.RawStdEncoding.EncodeToString([]byte(Token))[:20], "Q2FuYXJ5", "AwBQYDK2Vw", "7f3a", twice[:20],
		hex.EncodeToString([]byte("Canary")), strings.ToUpper(hex.EncodeToString([]byte("Canary"))),
		base64.RawStdEncoding.EncodeToString(fmt.Appendf(nil, "git:%x", Token))[8:26],
		base64.RawStdEncoding.EncodeToString([]byte("git:" + Token))[8:26], base64.RawStdEncoding.EncodeToString([]byte(Key))[40:80],
	} {
		if strings.Contains(text, form) {
			found = append(found, form)
		}
	}
	return found
}
