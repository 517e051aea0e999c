package browsercheck

import (
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"tazlab.net/castle/ci/test/needs"
)

// strict is the policy that castle's image has by itself.
const strict = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"

func writeSite(t *testing.T, files string) string {
	t.Helper()
	folder := t.TempDir()
	for _, file := range txtar.Parse([]byte(files)).Files {
		name := filepath.Join(folder, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

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
	folder := writeSite(t, files)
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
