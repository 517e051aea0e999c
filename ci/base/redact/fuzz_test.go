package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/base/redact/redacttest"
)

// shown is a text with a value in it: the middle is what the value alone has made of it.
type shown struct{ before, middle, after string }

func (s shown) String() string { return s.before + s.middle + s.after }

// escape is an encoding that takes one character after the other.
func escape(each func(string) string) func(shown) shown {
	return func(s shown) shown { return shown{each(s.before), each(s.middle), each(s.after)} }
}

// inGroups is base64, whose characters have six bits each, of one byte or of two.
func inGroups(encoding *base64.Encoding) func(shown) shown {
	return func(s shown) shown {
		text := encoding.EncodeToString([]byte(s.String()))
		first, last := (8*len(s.before)+5)/6, 8*len(s.before+s.middle)/6
		return shown{text[:first], text[first:last], text[last:]}
	}
}

func quotesOff(text string) string { return text[1 : len(text)-1] }

// encodings are how texts get into other texts.
var encodings = []struct {
	name string
	of   func(shown) shown
}{
	{"none", func(s shown) shown { return s }},
	{"JSON", escape(func(text string) string {
		quoted, _ := json.Marshal(text)
		return quotesOff(string(quoted))
	})},
	{"JSON without HTML", escape(func(text string) string {
		var quoted bytes.Buffer
		encoder := json.NewEncoder(&quoted)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(text)
		return quotesOff(strings.TrimSuffix(quoted.String(), "\n"))
	})},
	{"%q", escape(func(text string) string { return quotesOff(strconv.Quote(text)) })},
	{"YAML, single quotes", escape(func(text string) string { return strings.ReplaceAll(text, "'", "''") })},
	{"YAML, double quotes", escape(func(text string) string {
		quoted, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: text})
		if err != nil || !utf8.ValidString(text) {
			return text
		}
		return quotesOff(strings.TrimSuffix(string(quoted), "\n"))
	})},
	{"query", escape(url.QueryEscape)},
	{"query, lower case", escape(func(text string) string { return lower(url.QueryEscape(text)) })},
	{"path", escape(url.PathEscape)},
	{"path, lower case", escape(func(text string) string { return lower(url.PathEscape(text)) })},
	{"user", escape(func(text string) string { return url.User(text).String() })},
	{"user, lower case", escape(func(text string) string { return lower(url.User(text).String()) })},
	{"hexadecimal", escape(func(text string) string { return hex.EncodeToString([]byte(text)) })},
	{"HEXADECIMAL", escape(func(text string) string { return strings.ToUpper(hex.EncodeToString([]byte(text))) })},
	{"base64", inGroups(base64.StdEncoding)},
	{"base64 for URLs", inGroups(base64.RawURLEncoding)},
}

// lower has %2f for %2F.
func lower(escaped string) string {
	text := []byte(escaped)
	for i, c := range text {
		if c == '%' {
			copy(text[i:], bytes.ToLower(text[i:i+3]))
		}
	}
	return string(text)
}

// A value is encoded within a text, and the result within another: nothing that the value alone has made of it stays whole.
func FuzzRedactTakesOutAValueThatWasEncodedTwice(f *testing.F) {
	for first := range encodings {
		for second := range encodings {
			for i, value := range []string{
				redacttest.Token, redacttest.Key, "hunter2", "two\tcolumns", "hunter\u20282", "hunter's", `hunter"s`, `hunter\`,
				"ünïcode €\u2028\x1b 🔑 'x''", "\xff\x00 no UTF-8 %2F", ":@,;/?\x01<&>",
			} {
				before := "git:"[:(first+second+i)%4]
				if before != "" && len(value) < shortestAnywhere {
					before = "git:" // a part of a longer word it may be
				}
				f.Add(value, before, "@host", uint8(first), uint8(second))
			}
		}
	}
	f.Fuzz(func(t *testing.T, value, before, after string, first, second uint8) {
		value = strings.TrimSpace(value)
		if len(value) < shortestValue || !utf8.ValidString(before) || !utf8.ValidString(after) || strings.Contains(value+before+after, "redacted") {
			t.Skip()
		}
		if matchOf(value) == wholeToken && (wordBefore(before) || wordAfter(after)) {
			t.Skip()
		}
		inner, outer := encodings[int(first)%len(encodings)], encodings[int(second)%len(encodings)]
		text := inner.of(shown{before, value, after})
		text.before, text.after = before+text.before, text.after+after
		text = outer.of(text)

		redacted := New(value).Redact("x " + text.String() + " y")
		for _, rest := range strings.Split(redacted, Mark) {
			if strings.Contains(rest, text.middle) {
				t.Errorf("%s in %s: %q is left of %q in %q", inner.name, outer.name, text.middle, value, redacted)
			}
		}
	})
}

// A text is cut within a value, as it stands there in any encoding: what is left of it is taken out where it is long enough.
func FuzzRedactTakesOutWhatACutLeaves(f *testing.F) {
	for encoding := range encodings {
		for i, value := range []string{redacttest.Token, redacttest.Key, "hunter2-hunter2", "ünïcode €\u2028\x1b 🔑 'x''"} {
			for _, at := range []uint16{3, 7, 12, 40} {
				f.Add(value, uint8(encoding), at, i%2 == 0)
			}
		}
	}
	f.Fuzz(func(t *testing.T, value string, encoding uint8, at uint16, end bool) {
		value = strings.TrimSpace(value)
		if len(value) < shortestAnywhere || strings.ContainsAny(value, "\n") || strings.Contains(value, "redacted") {
			t.Skip()
		}
		of := encodings[int(encoding)%len(encodings)]
		text := of.of(shown{"", value, ""})
		cut := int(at) % (len(text.middle) + 1)
		rest, seen := text.middle[:cut], "x "+text.before+text.middle[:cut]
		if end {
			rest, seen = text.middle[cut:], text.middle[cut:]+text.after+" y"
		}
		if len(rest) < enough(text.middle) || len(rest) == len(text.middle) {
			t.Skip()
		}
		if redacted := New(value).Redact(seen); strings.Contains(redacted, rest) {
			t.Errorf("%s: %q is left of %q in %q", of.name, rest, value, redacted)
		}
	})
}
