//go:build linux

package inside

import (
	"net/http"
	"time"
)

// PageName is what the image of a site that nobody has published yet starts.
const PageName = "page"

// Page answers every request, a probe's as well, and has no page.
func Page() error {
	server := &http.Server{Addr: ":80", ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) { answer.WriteHeader(http.StatusOK) })}
	return server.ListenAndServe()
}
