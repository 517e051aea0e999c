package siteheaders

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Mode says which headers are wanted: Fitted, Strict, Off, or the text of a Content-Security-Policy.
type Mode string

const (
	// Fitted allows what the built site uses.
	Fitted Mode = "fitted"
	// Strict allows what the site itself serves, and nothing inline.
	Strict Mode = "strict"
	// Off leaves out every header that can break a site.
	Off Mode = "off"
)

const choices = "want fitted, strict, off, or the text of a Content-Security-Policy such as \"default-src 'self'\""

// directives are all that a policy can hold. Sources: CSP Level 3, Trusted Types, Upgrade Insecure Requests and Mixed
// Content, with those of earlier levels that browsers still read.
var directives = strings.Fields(`base-uri block-all-mixed-content child-src connect-src default-src fenced-frame-src font-src
	form-action frame-ancestors frame-src img-src manifest-src media-src navigate-to object-src plugin-types prefetch-src
	report-to report-uri require-sri-for require-trusted-types-for sandbox script-src script-src-attr script-src-elem style-src
	style-src-attr style-src-elem trusted-types upgrade-insecure-requests webrtc worker-src`)

// Parse reads a mode. White space in a policy, line ends included, is one blank each.
func Parse(text string) (Mode, error) {
	text = strings.Join(strings.Fields(text), " ")
	switch mode := Mode(strings.ToLower(text)); mode {
	case Fitted, Strict, Off:
		return mode, nil
	}
	var known bool
	var mistakes []error
	for part := range strings.SplitSeq(text, ";") {
		name, _, _ := strings.Cut(strings.TrimSpace(part), " ")
		switch {
		case name == "":
		case slices.Contains(directives, strings.ToLower(name)):
			known = true
		default:
			mistakes = append(mistakes, fmt.Errorf("the policy's %q is no directive; correct its name or leave it out", name))
		}
	}
	if !known {
		return "", fmt.Errorf("headers %q: %s", text, choices)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		mistakes = append(mistakes, errors.New("the policy has characters that no header may have: write hosts in their xn-- form"))
	}
	if strings.Contains(text, ",") {
		mistakes = append(mistakes, errors.New("the policy has a comma, which would make two policies of it: separate sources by blanks and directives by semicolons"))
	}
	return Mode(text), errors.Join(mistakes...)
}

// name is the mode as reports have it.
func (m Mode) name() string {
	switch m {
	case Fitted, Strict, Off:
		return string(m)
	}
	return "own"
}

// has says whether a text of one's own has a directive.
func (m Mode) has(directive string) bool {
	for part := range strings.SplitSeq(string(m), ";") {
		name, _, _ := strings.Cut(strings.TrimSpace(part), " ")
		if strings.EqualFold(name, directive) {
			return true
		}
	}
	return false
}
