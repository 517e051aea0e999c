// Package rendering writes a result in the format that a caller names: text for a person, Markdown for GitHub's job summary,
// JSON for a program.
package rendering

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"tazlab.net/castle/ci/base/redact"
)

// Result is what can be written. Its JSON form is encoding/json's.
type Result interface {
	Text() string
	Markdown() string
}

// formats are the ways to write a result, by their names.
var formats = map[string]func(Result) (string, error){
	"text":     func(r Result) (string, error) { return r.Text(), nil },
	"markdown": func(r Result) (string, error) { return r.Markdown(), nil },
	"json":     func(r Result) (string, error) { return JSON(r) },
}

// As writes the result as text, json or markdown; a format's name is read in any case.
func As(format string, result Result) (string, error) {
	if err := Check(format); err != nil {
		return "", err
	}
	return formats[strings.ToLower(format)](result)
}

// Check reports a format that As does not know, before anything is done whose report could then not be written.
func Check(format string) error {
	if _, known := formats[strings.ToLower(format)]; !known {
		return fmt.Errorf("%q is no format: want text, json or markdown", format)
	}
	return nil
}

// JSON is the value for a program, indented, with <, > and & as they are, ending in a newline. The secrets that this process
// knows are taken out of each text by itself: an error may quote one in JSON or base64 already, and in the whole document it
// would be encoded once more.
func JSON(value any) (string, error) {
	document, err := encoded(value)
	return text.ReplaceAllStringFunc(document, func(quoted string) string {
		var whole string
		_ = json.Unmarshal([]byte(quoted), &whole) // the encoder has just written it
		shown := redact.Text(whole)
		if shown == whole {
			return quoted
		}
		quoted, _ = encoded(shown) // a text has no error
		return strings.TrimSpace(quoted)
	}), err
}

// text is a text in a JSON document, quotes included.
var text = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

func encoded(value any) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return b.String(), err
}

// Code puts a value of a Markdown table into a code span; a pipe would end the cell and a backtick the span. A secret that has
// such a sign is taken out before.
func Code(value string) string {
	return "`" + strings.NewReplacer("|", "\\|", "`", "'").Replace(redact.Text(value)) + "`"
}

// Block puts text that is aligned by spaces, or is of a language such as yaml, into a block of Markdown. It ends in a newline.
func Block(language, text string) string { return "```" + language + "\n" + text + "```\n" }

// Count is a number with its noun, which takes an s where there is not one: 1 page, 0 pages.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ShortSHA is as much of a commit's SHA as a person compares.
func ShortSHA(sha string) string { return sha[:min(len(sha), 12)] }
