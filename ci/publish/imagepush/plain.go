package imagepush

import (
	"errors"
	"net/http"

	"tazlab.net/castle/ci/base/plainhttp"
)

// errInClear keeps credentials from a connection that anybody on the way can read.
var errInClear = errors.New("it answers in HTTP alone, and a password is not sent in the clear: let it speak HTTPS (castle-publish --plain-http REGISTRY sends it all the same)")

// encrypted lets credentials through over HTTPS, to this machine itself, and to the registries that are named as plain ones.
// The library also tries HTTP at private addresses, where HTTPS does not answer, and would send them there as well.
type encrypted struct {
	next  http.RoundTripper
	plain []string
}

func (e *encrypted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" && !plainhttp.Allowed(r.URL, e.plain) {
		return nil, errInClear
	}
	return e.next.RoundTrip(r)
}
