package browsercheck

import (
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/publish/site/sitetest"
	"tazlab.net/castle/ci/test/needs"
)

// strict is the policy that castle's image has by itself.
const strict = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"

// serve is a server of a folder with headers, as the published image is one.
func serve(t *testing.T, folder string, headers map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		name := filepath.Join(folder, filepath.FromSlash(r.URL.Path))
		if strings.HasSuffix(r.URL.Path, "/") {
			name = filepath.Join(name, "index.html")
		}
		w.Header().Set("Content-Type", mime.TypeByExtension(filepath.Ext(name)))
		data, err := os.ReadFile(name)
		if err != nil {
			data, _ = os.ReadFile(filepath.Join(folder, "404.html"))
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// look checks a site as one behind a policy, without a network.
func look(t *testing.T, files string, change func(*Options)) Report {
	t.Helper()
	folder := sitetest.Unpack(t, files)
	o := Options{
		URL: serve(t, folder, map[string]string{"Content-Security-Policy": strict, "X-Frame-Options": "DENY"}), Dir: folder, Offline: true,
		Program: needs.Command(t, "chromium", Programs...), Widths: []int{1280},
	}
	if change != nil {
		change(&o)
	}
	report, err := Check(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}
