package siteheaders

import (
	"fmt"
	"slices"
	"strings"
)

// directive is a row of the policy: what it allows of itself, and whether it is said even where nothing was added.
type directive struct {
	name   string
	basis  []string
	always bool
}

// policyOrder is the strict policy, and where the rest stands in it. What is not said is as default-src says.
var policyOrder = []directive{
	{"default-src", []string{self}, true},
	{scriptSrc, []string{self}, false},
	{scriptSrcAttr, nil, false},
	{styleSrc, []string{self}, false},
	{styleSrcAttr, nil, false},
	{imgSrc, []string{self, dataScheme}, true},
	{fontSrc, []string{self}, false},
	{connectSrc, []string{self}, false},
	{mediaSrc, []string{self}, false},
	{frameSrc, []string{self}, false},
	{workerSrc, []string{self}, false},
	{manifestSrc, []string{self}, false},
	{objectSrc, []string{none}, true},
	{baseURI, []string{self}, true},
	{formAction, []string{self}, true},
	{frameAncestors, []string{none}, true},
}

// policy writes the Content-Security-Policy.
func (n needs) policy() string {
	var parts []string
	for _, d := range policyOrder {
		sources := n.allowed(d)
		if d.always || len(sources) > len(d.basis) {
			parts = append(parts, d.name+" "+strings.Join(sources, " "))
		}
	}
	return strings.Join(parts, "; ")
}

// allowed are the sources of a directive in the order of the policy.
func (n needs) allowed(d directive) []string {
	wanted := n.sources(d.name)
	inline := slices.Contains(wanted, unsafeInline)
	if d.name == styleSrcAttr && slices.Contains(n.sources(styleSrc), unsafeInline) ||
		d.name == scriptSrcAttr && slices.Contains(n.sources(scriptSrc), unsafeInline) {
		return nil // without its own directive, the wider one decides
	}
	if d.name == scriptSrcAttr && !inline && len(wanted) > 0 {
		wanted = append([]string{unsafeHashes}, wanted...)
	}
	open := slices.Contains(wanted, anyHost)
	sources := slices.Clone(d.basis)
	for _, source := range wanted {
		switch {
		case slices.Contains(sources, source):
		case inline && (isHash(source) || source == unsafeHashes): // a hash would take the effect from 'unsafe-inline'
		case open && strings.HasPrefix(source, "https://"), !open && covered(wanted, source):
		default:
			sources = append(sources, source)
		}
	}
	if len(sources) > 1 && sources[0] == none {
		sources = sources[1:]
	}
	return sources
}

// covered says whether another of the sources names the whole host, or all below it.
func covered(sources []string, source string) bool {
	scheme, host, found := strings.Cut(source, "://")
	if !found {
		return false
	}
	host, path, _ := strings.Cut(host, "/")
	if path != "" && slices.Contains(sources, scheme+"://"+host) {
		return true
	}
	for at := strings.IndexByte(host, '.'); at >= 0; {
		if wildcard := scheme + "://*" + host[at:]; wildcard != source && slices.Contains(sources, wildcard) {
			return true
		}
		next := strings.IndexByte(host[at+1:], '.')
		if next < 0 {
			return false
		}
		at += 1 + next
	}
	return false
}

// maxPolicy is how long a policy gets, in bytes. A proxy reads an answer's header fields into one buffer and answers
// 502 where they do not fit: nginx's proxy_buffer_size is one memory page by default, 4 KB on most machines
// (nginx.org/en/docs/http/ngx_http_proxy_module.html), and ingress-nginx sets 4k
// (kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/configmap/#proxy-buffer-size). The other fields of
// an answer take some 700 bytes.
const maxPolicy = 3 << 10

// fitBuffer shortens a policy that is too long, in the order of what that costs: styles, then where pictures and media
// come from, then handlers, then scripts, then all other hosts.
func (n needs) fitBuffer() {
	for _, step := range []struct {
		directive, word, what string
		match                 func(string) bool
	}{
		{styleSrc, unsafeInline, "inline styles", isHash},
		{imgSrc, anyHost, "hosts of pictures", isHost},
		{mediaSrc, anyHost, "hosts of sound and film", isHost},
		{scriptSrcAttr, unsafeInline, "event handlers in attributes", isHash},
		{scriptSrc, unsafeInline, "inline scripts", isHash},
		{frameSrc, anyHost, "hosts of frames", isHost},
		{connectSrc, anyHost, "hosts that scripts ask", isHost},
		{fontSrc, anyHost, "hosts of fonts", isHost},
		{formAction, anyHost, "hosts of forms", isHost},
		{styleSrc, anyHost, "hosts of stylesheets", isHost},
		{scriptSrc, anyHost, "hosts of scripts", isHost},
	} {
		if len(n.policy()) <= maxPolicy {
			return
		}
		count := 0
		for _, source := range n.sources(step.directive) {
			if step.match(source) {
				count++
			}
		}
		if count > 1 {
			n.replace(step.match, need{step.directive, step.word,
				fmt.Sprintf("%d different %s, too many to list in a header", count, step.what)})
		}
	}
}
