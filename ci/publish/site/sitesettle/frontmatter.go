package sitesettle

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// contentExtensions are those of files that are pages. Source: the default content types of Hugo v0.165.0, media/config.go.
var contentExtensions = []string{".md", ".mdown", ".markdown", ".html", ".htm", ".adoc", ".asciidoc", ".ad", ".pandoc", ".pdc", ".rst", ".org"}

func isContent(name string) bool {
	return slices.Contains(contentExtensions, strings.ToLower(path.Ext(name)))
}

// frontMatter reads what stands before a page's text, with the settings of params among the others as Hugo has them. There is
// nothing in front matter that cannot be read: Hugo's own error says it better.
func frontMatter(content []byte) hugoconfig.Config {
	content = bytes.TrimLeft(bytes.TrimPrefix(content, []byte("\uFEFF")), " \t\r\n")
	var settings hugoconfig.Config
	switch {
	case bytes.HasPrefix(content, []byte("---")):
		settings, _ = hugoconfig.Decode(".yaml", fenced(content, "---"))
	case bytes.HasPrefix(content, []byte("+++")):
		settings, _ = hugoconfig.Decode(".toml", fenced(content, "+++"))
	case bytes.HasPrefix(content, []byte("{")):
		var object json.RawMessage
		if json.NewDecoder(bytes.NewReader(content)).Decode(&object) == nil {
			settings, _ = hugoconfig.Decode(".json", object)
		}
	case bytes.HasPrefix(content, []byte("#+")):
		settings = orgKeywords(string(content))
	}
	for key, value := range settings.Part("params") {
		settings[key] = value
	}
	return settings
}

// fenced is what stands between a line that begins with the fence and the next one.
func fenced(content []byte, fence string) []byte {
	_, rest, _ := bytes.Cut(content, []byte(fence))
	if bytes.HasPrefix(bytes.TrimLeft(rest, "\r\n"), []byte(fence)) {
		return nil
	}
	inside, _, found := bytes.Cut(rest, []byte("\n"+fence))
	if !found {
		return nil
	}
	return inside
}

// orgKeywords reads lines like "#+tags[]: a b" and "#+title: Text". Source: parser/metadecoders/decoder.go of Hugo v0.165.0.
func orgKeywords(content string) hugoconfig.Config {
	settings := hugoconfig.Config{}
	for line := range strings.Lines(content) {
		keyword, isKeyword := strings.CutPrefix(line, "#+")
		if !isKeyword {
			break
		}
		key, value, _ := strings.Cut(keyword, ":")
		value = strings.TrimSpace(value)
		name, isList := strings.CutSuffix(strings.ToLower(key), "[]")
		if !isList {
			settings[name] = value
			continue
		}
		var list []any
		for _, word := range strings.Fields(value) {
			list = append(list, word)
		}
		settings[name] = list
	}
	return settings
}

// built reports whether Hugo builds the page now and gives it an address. Only such a page has terms.
func (s *site) built(page hugoconfig.Config, now time.Time) bool {
	build := page.Part("build")
	if build == nil {
		build = page.Part("_build")
	}
	if page.Bool("headless", false) || build["render"] == "never" || build["render"] == false {
		return false
	}
	draft := page.Bool("draft", false)
	if published, isBool := page["published"].(bool); isBool && page["draft"] == nil {
		draft = !published
	}
	if draft && !s.config.Bool("buildDrafts", false) {
		return false
	}
	// The keys and their order are Hugo's default. Source: gohugo.io/configuration/front-matter.
	if at := firstTime(page, "publishdate", "pubdate", "published", "date"); at.After(now) && !s.config.Bool("buildFuture", false) {
		return false
	}
	expires := firstTime(page, "expirydate", "unpublishdate")
	return expires.IsZero() || !expires.Before(now) || s.config.Bool("buildExpired", false)
}

// timeForms are the usual ways to write a time in front matter.
var timeForms = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 -07:00", time.DateTime, "2006-01-02 15:04", time.DateOnly}

// firstTime is the first of the keys that holds a time, zero where none does.
func firstTime(page hugoconfig.Config, keys ...string) time.Time {
	for _, key := range keys {
		switch value := page[key].(type) {
		case time.Time:
			return value
		case string:
			for _, form := range timeForms {
				if parsed, err := time.Parse(form, value); err == nil {
					return parsed
				}
			}
		}
	}
	return time.Time{}
}
