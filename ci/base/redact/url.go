package redact

import (
	"net/url"
	"regexp"
	"strings"
)

// address is anything that looks like a URL with an authority, up to the next blank.
var address = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://\S+`)

// URL removes user names and passwords from every URL in a text, whatever they are. The user of an ssh URL goes too: it is
// of no help to a reader.
func URL(text string) string {
	return address.ReplaceAllStringFunc(text, func(address string) string {
		scheme, rest, _ := strings.Cut(address, "://")
		authority := rest
		if parsed, err := url.Parse(address); err == nil && parsed.Host != "" {
			authority, _, _ = strings.Cut(rest, "/")
		}
		// Where the URL does not parse, a password with a slash in it may be why: then all before the last @ goes.
		at := strings.LastIndex(authority, "@")
		return scheme + "://" + rest[at+1:]
	})
}
