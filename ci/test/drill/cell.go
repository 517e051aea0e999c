package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What a cell shows: so many texts, and of each so many characters.
const (
	mostTexts  = 3
	mostOfText = 160
)

// fleeting is what is another in each run, or too long to be read: ports and addresses of tests, digests, keys.
var fleeting = []struct {
	text *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`\b127\.\d+\.\d+\.\d+(:\d+)?`), "127.0.0.1"},
	{regexp.MustCompile(`\bsha256:([0-9a-f]{7})[0-9a-f]{57}\b`), "sha256:$1…"},
	{regexp.MustCompile(`\bage1[a-z0-9]{58}\b`), "age1…"},
}

// cell is a cell of a table in Markdown.
func cell(texts []string) string {
	var shown []string
	for _, text := range texts {
		for _, f := range fleeting {
			text = f.text.ReplaceAllString(text, f.is)
		}
		if runes := []rune(text); len(runes) > mostOfText {
			text = strings.TrimSpace(string(runes[:mostOfText-1])) + "…"
		}
		if !slices.Contains(shown, text) {
			shown = append(shown, text)
		}
	}
	more := ""
	if len(shown) > mostTexts {
		more = fmt.Sprintf("; and %d more", len(shown)-mostTexts)
		shown = shown[:mostTexts]
	}
	return strings.ReplaceAll(strings.Join(shown, "; ")+more, "|", `\|`)
}
