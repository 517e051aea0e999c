package siteheaders

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// The directives that are fitted.
const (
	scriptSrc      = "script-src"
	scriptSrcAttr  = "script-src-attr"
	styleSrc       = "style-src"
	styleSrcAttr   = "style-src-attr"
	imgSrc         = "img-src"
	fontSrc        = "font-src"
	connectSrc     = "connect-src"
	mediaSrc       = "media-src"
	frameSrc       = "frame-src"
	workerSrc      = "worker-src"
	manifestSrc    = "manifest-src"
	objectSrc      = "object-src"
	baseURI        = "base-uri"
	formAction     = "form-action"
	frameAncestors = "frame-ancestors"
)

// What is needed of other headers, and told in the same way.
const (
	popups     = "popups"      // a window that another host's page opened, or that opened it
	permission = "permission " // with the feature's name behind it
	inFiles    = "files of "   // with a directive behind it: the files that need anything of it
)

// Sources that are no host.
const (
	self           = "'self'"
	none           = "'none'"
	unsafeInline   = "'unsafe-inline'"
	unsafeEval     = "'unsafe-eval'"
	unsafeHashes   = "'unsafe-hashes'"
	wasmUnsafeEval = "'wasm-unsafe-eval'"
	dataScheme     = "data:"
	blobScheme     = "blob:"
	anyHost        = "https:"
)

// need is a source that a directive must allow. Why is a noun phrase, for the sources that make a policy weak.
type need struct {
	directive, source, why string
}

// evidence is where a need was found.
type evidence struct {
	files   int
	example string // the first of them by name
}

// needs are those of a site.
type needs map[need]evidence

func (n needs) add(file string, wanted need) {
	found, known := n[wanted]
	if !known || file < found.example {
		found.example = file
	}
	found.files++
	n[wanted] = found
}

func (n needs) has(directive string) bool {
	for wanted := range n {
		if wanted.directive == directive {
			return true
		}
	}
	return false
}

// sources are those of a directive, sorted, each once.
func (n needs) sources(directive string) []string {
	var found []string
	for wanted := range n {
		if wanted.directive == directive {
			found = append(found, wanted.source)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// replace puts one need in the place of all of its directive whose source matches.
func (n needs) replace(match func(source string) bool, by need) {
	for wanted := range n {
		if wanted.directive == by.directive && match(wanted.source) {
			delete(n, wanted)
		}
	}
	n[by] = n[need{directive: inFiles + by.directive}]
}

// weakSources are those that open a directive, or much of it.
var weakSources = []string{unsafeInline, unsafeEval, anyHost, dataScheme}

const because = " because of " // in a sentence of weak, between what is allowed and why

// weak tells what the policy is weak for: a source, why it is needed and where, with all its directives in one sentence.
func (n needs) weak() []string {
	type reason struct {
		source, why string
		evidence
	}
	reasons := map[reason][]string{}
	for wanted, found := range n {
		if wanted.why == "" || !slices.Contains(weakSources, wanted.source) || wanted.source == dataScheme && wanted.directive != scriptSrc {
			continue
		}
		if wanted.directive == styleSrcAttr && slices.Contains(n.sources(styleSrc), unsafeInline) {
			continue // said of all styles already
		}
		r := reason{wanted.source, wanted.why, found}
		reasons[r] = append(reasons[r], wanted.directive)
	}
	var sentences []string
	for r, allowing := range reasons {
		slices.Sort(allowing)
		where := r.example
		if r.files > 1 {
			where = fmt.Sprintf("%d files, such as %s", r.files, r.example)
		}
		sentences = append(sentences, fmt.Sprintf("%s %s%s%s, in %s", strings.Join(allowing, ", "), r.source, because, r.why, where))
	}
	slices.Sort(sentences)
	return sentences
}

// fewReasons is how many reasons for one source Brief shows as they are.
const fewReasons = 2

// Brief shortens what Weak says: of a source with more than two reasons one sentence, in the place of the first, with their
// number, two examples and the call that lists all.
func Brief(weak []string, listAll string) []string {
	type reasons struct{ directives, texts []string }
	bySource := map[string]*reasons{}
	parts := func(sentence string) (directives []string, source, text string) {
		allowing, text, _ := strings.Cut(sentence, because)
		at := strings.LastIndexByte(allowing, ' ') + 1
		return strings.Split(strings.TrimSpace(allowing[:at]), ", "), allowing[at:], text
	}
	for _, sentence := range weak {
		directives, source, text := parts(sentence)
		if bySource[source] == nil {
			bySource[source] = &reasons{}
		}
		of := bySource[source]
		of.directives, of.texts = append(of.directives, directives...), append(of.texts, text)
	}
	var sentences []string
	for _, sentence := range weak {
		_, source, text := parts(sentence)
		of := bySource[source]
		switch {
		case len(of.texts) <= fewReasons:
			sentences = append(sentences, sentence)
		case text == of.texts[0]:
			allowing := strings.Join(slices.Compact(slices.Sorted(slices.Values(of.directives))), ", ")
			sentences = append(sentences, fmt.Sprintf("%s %s for %d reasons. Examples: %s; %s. All: %s",
				allowing, source, len(of.texts), text, of.texts[1], listAll))
		}
	}
	return sentences
}

// hash is the source that stands for one inline script, style or handler. Browsers hash the text as they parsed it, in UTF-8.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func isHash(source string) bool { return strings.HasPrefix(source, "'sha256-") }

func isHost(source string) bool {
	return !strings.HasPrefix(source, "'") && !strings.HasSuffix(source, ":")
}
