package browsercheck

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/runtime"
)

// longest is how much of a message is shown.
const longest = 300

// violation says in words what a policy refused.
func (w *watcher) violation(details *audits.ContentSecurityPolicyIssueDetails) problem {
	found := problem{rule: ruleViolation}
	if at := details.SourceCodeLocation; at != nil {
		found.where = w.place(at.URL, at.LineNumber)
	}
	refused := ""
	switch details.ContentSecurityPolicyViolationType {
	case audits.ContentSecurityPolicyViolationTypeKInlineViolation:
		refused = inline[details.ViolatedDirective]
		if refused == "" {
			refused = "what stands in the page"
		}
	case audits.ContentSecurityPolicyViolationTypeKEvalViolation:
		refused = "eval of a string"
	case audits.ContentSecurityPolicyViolationTypeKWasmEvalViolation:
		refused = "WebAssembly"
	default:
		refused = w.source(details.BlockedURL)
		// A frame that is refused names the page around it.
		if at, err := url.Parse(details.BlockedURL); err == nil && at.Host != "" && details.ViolatedDirective != "frame-ancestors" {
			found.where = strings.TrimSpace(found.where + " asks for " + w.place(details.BlockedURL, -1))
		}
	}
	found.cause = fmt.Sprintf("%s refuses %s", details.ViolatedDirective, refused)
	return found
}

// inline is what stands in the page, by the directive that refuses it.
var inline = map[string]string{
	"script-src-elem": "an inline script",
	"script-src-attr": "a handler in an attribute",
	"script-src":      "an inline script",
	"style-src-elem":  "an inline style",
	"style-src-attr":  "a style attribute",
	"style-src":       "an inline style",
}

// source is what of an address a policy would have to name.
func (w *watcher) source(address string) string {
	at, err := url.Parse(address)
	switch {
	case err != nil || address == "":
		return "an address that Chromium does not tell"
	case at.Host == w.site.Host:
		return "the site itself"
	case at.Host != "":
		return at.Host
	case at.Scheme != "":
		return at.Scheme + ":"
	}
	return address + ":" // data, blob
}

// place is an address, shortened where it is the site's own, and a line, which the browser counts from 0; -1 is none.
func (w *watcher) place(address string, line int64) string {
	if at, err := url.Parse(address); err == nil && at.Host == w.site.Host && at.Scheme == w.site.Scheme {
		at.Scheme, at.Host, at.User = "", "", nil
		address = at.String()
	}
	if address == "" || line < 0 {
		return shorten(address)
	}
	return fmt.Sprintf("%s:%d", shorten(address), line+1)
}

func exceptionText(details *runtime.ExceptionDetails) string {
	if details.Exception == nil {
		return firstLine(details.Text)
	}
	return firstLine(details.Text + " " + value(details.Exception))
}

// consoleText joins what was handed to console.error.
func consoleText(arguments []*runtime.RemoteObject) string {
	parts := make([]string, len(arguments))
	for i, argument := range arguments {
		parts[i] = value(argument)
	}
	return firstLine(strings.Join(parts, " "))
}

func value(object *runtime.RemoteObject) string {
	var text string
	switch {
	case json.Unmarshal([]byte(object.Value), &text) == nil:
		return text
	case object.Description != "":
		return object.Description
	case len(object.Value) > 0:
		return string(object.Value)
	}
	return string(object.Type)
}

// firstURL is the address of a script, or of what called it.
func firstURL(address string, stack *runtime.StackTrace) string {
	if address == "" {
		address, _ = top(stack)
	}
	return address
}

func top(stack *runtime.StackTrace) (address string, line int64) {
	if stack == nil || len(stack.CallFrames) == 0 {
		return "", -1
	}
	return stack.CallFrames[0].URL, stack.CallFrames[0].LineNumber
}

// firstLine leaves out the stack that follows an error's message.
func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return shorten(text)
}

func shorten(text string) string {
	if letters := []rune(text); len(letters) > longest {
		return string(letters[:longest]) + "…"
	}
	return text
}
