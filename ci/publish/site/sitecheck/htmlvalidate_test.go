package sitecheck

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/findings"

	"github.com/rogpeppe/go-internal/txtar"

	"tazlab.net/castle/ci/publish/site/sitecheck/rules"
	"tazlab.net/castle/ci/test/needs"
)

// confirmedBy are html-validate's names for what our rules of HTML find.
var confirmedBy = map[string][]string{
	rules.BlockInP:        {"close-order", "element-permitted-content"},
	rules.DuplicateAttr:   {"no-dup-attr"},
	rules.DuplicateID:     {"no-dup-id", "valid-id"},
	rules.HeadingOrder:    {"heading-level"},
	rules.ImgAlt:          {"wcag/h37"},
	rules.Misnested:       {"close-order"},
	rules.Nesting:         {"element-permitted-content", "element-permitted-parent"},
	rules.NoDoctype:       {"missing-doctype", "doctype-html", "parser-error"},
	rules.NoLang:          {"element-required-attributes"},
	rules.NoTitle:         {"empty-title", "element-required-content"},
	rules.ObsoleteElement: {"deprecated"},
	rules.StrayEndTag:     {"close-order", "void-content"},
	rules.Unclosed:        {"close-order", "no-implicit-close", "no-self-closing", "parser-error"},
	rules.UnknownElement:  {"element-name", "no-unknown-elements"},
}

// elementNamed are the rules whose findings html-validate must confirm about the very element.
var elementNamed = []string{rules.Misnested, rules.Nesting, rules.ObsoleteElement, rules.StrayEndTag, rules.Unclosed, rules.UnknownElement}

// unknowable are the rules of what a checker of single pages cannot know: the site around the page, its feeds, its bytes.
var unknowable = []string{
	rules.BrokenLink, rules.Encoding, rules.ForeignRequest, rules.LinkCase, rules.MissingAnchor, rules.NoIndex, rules.RedirectedLink,
	rules.Translation, rules.TranslationLang, rules.XML, rules.XMLMissingFields,
}

// TestHTMLValidateConfirmsWhatTheRulesOfHTMLFind keeps our rules of HTML from being stricter than those of a checker that many
// use. Each line of a golden page is a case of its own, in a page with all its tags, which html-validate asks for.
func TestHTMLValidateConfirmsWhatTheRulesOfHTMLFind(t *testing.T) {
	var covered []string
	for rule := range confirmedBy {
		covered = append(covered, rule)
	}
	if covered = append(covered, unknowable...); len(covered) != len(rules.Names()) {
		t.Errorf("%d of %d rules are compared or unknowable", len(covered), len(rules.Names()))
	}
	checker := newHTMLValidate(t)
	dir := filetest.New(t, htmlCases(t))
	report, err := Check(t.Context(), Options{Dir: dir, BaseURL: "https://example.org/", Ignore: unknowable})
	if err != nil {
		t.Fatal(err)
	}
	said := checker.check(t, dir)
	seen := map[string]bool{}
	for _, finding := range report.Findings {
		seen[finding.Rule] = true
		messages := said[finding.File]
		confirming := slices.IndexFunc(messages, func(m htmlValidateMessage) bool { return m.confirms(finding) })
		if confirming < 0 {
			page, err := os.ReadFile(filepath.Join(dir, finding.File))
			t.Errorf("%s [%s: %s] is not confirmed in\n%s%v\nhtml-validate says %+v", finding.Message, finding.Rule, finding.Cause, page, err, messages)
			continue
		}
		said[finding.File] = slices.Delete(messages, confirming, confirming+1) // a message confirms one finding
	}
	for rule := range confirmedBy {
		if !seen[rule] {
			t.Errorf("no case breaks %s", rule)
		}
	}
}

// htmlCases are the pages of the golden sites of the rules of HTML.
func htmlCases(t *testing.T) map[string]string {
	t.Helper()
	const head, tail = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page</title></head><body>\n", "\n</body></html>\n"
	cases := map[string]string{"index.html": head + tail}
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files {
			if filepath.Ext(file.Name) != ".html" {
				continue
			}
			folder := filepath.Join(strings.TrimSuffix(filepath.Base(name), ".txtar"), filepath.Dir(file.Name))
			body, standard := strings.CutPrefix(string(file.Data), goodPage+"\n")
			if !standard {
				cases[filepath.Join(folder, "whole.html")] = string(file.Data)
				continue
			}
			for i, line := range strings.Split(body, "\n") {
				cases[filepath.Join(folder, fmt.Sprintf("%d.html", i))] = head + line + tail
			}
		}
	}
	return cases
}

// htmlValidate is the folder that html-validate is installed in.
type htmlValidate string

// newHTMLValidate installs the pinned version, once for each lock file.
func newHTMLValidate(t *testing.T) htmlValidate {
	t.Helper()
	npm := needs.Command(t, "npm", "npm")
	needs.Command(t, "nodejs", "node")
	const pins = "testdata/htmlvalidate"
	lock, err := os.ReadFile(filepath.Join(pins, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	folder := filepath.Join(needs.Cache(t), "html-validate", hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(folder); err == nil {
		return htmlValidate(folder)
	}
	// Put in place whole, so that a folder that is there holds everything.
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(folder), ".new-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fresh)
	for _, name := range []string{"package.json", "package-lock.json"} {
		pin, err := os.ReadFile(filepath.Join(pins, name))
		if err != nil {
			t.Fatal(err)
		}
		filetest.Write(t, filepath.Join(fresh, name), string(pin))
	}
	install := exec.CommandContext(t.Context(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = fresh
	if output, err := install.CombinedOutput(); err != nil {
		needs.Missing(t, "npm cannot install html-validate (%v); give it a registry that it reaches:\n%s", err, output)
	}
	if err := os.Rename(fresh, folder); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	return htmlValidate(folder)
}

// htmlValidateMessage is one of its findings.
type htmlValidateMessage struct {
	RuleID  string `json:"ruleId"`
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// confirms reports whether the message is about the finding: of a matching rule, on its line, and about its element.
func (m htmlValidateMessage) confirms(finding findings.Finding) bool {
	if !slices.Contains(confirmedBy[finding.Rule], m.RuleID) || m.Line != finding.Line {
		return false
	}
	tag, _, _ := strings.Cut(finding.Cause, " ")
	if !slices.Contains(elementNamed, finding.Rule) || !strings.HasPrefix(tag, "<") {
		return true
	}
	return strings.Contains(m.Message, strings.Trim(tag, "</>")+">")
}

// check is what html-validate says about the pages of a site, by file.
func (h htmlValidate) check(t *testing.T, dir string) map[string][]htmlValidateMessage {
	t.Helper()
	config, err := filepath.Abs("testdata/htmlvalidate/config.json")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "messages.json")
	command := exec.CommandContext(t.Context(), filepath.Join(string(h), "node_modules/.bin/html-validate"),
		"--config", config, "--formatter", "json="+out, "--max-warnings=-1", ".")
	command.Dir = dir
	output, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("html-validate wrote nothing: %v\n%s", err, output)
	}
	var results []struct {
		FilePath string                `json:"filePath"`
		Messages []htmlValidateMessage `json:"messages"`
	}
	if err := json.Unmarshal(data, &results); err != nil {
		t.Fatal(err)
	}
	said := map[string][]htmlValidateMessage{}
	for _, result := range results {
		file, err := filepath.Rel(dir, result.FilePath)
		if err != nil {
			t.Fatal(err)
		}
		said[filepath.ToSlash(file)] = result.Messages
	}
	return said
}
