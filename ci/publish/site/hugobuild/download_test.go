package hugobuild

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/retry"
)

// quick makes pauses short.
func quick(t *testing.T) {
	t.Helper()
	was := firstPause
	firstPause = time.Millisecond
	t.Cleanup(func() { firstPause = was })
}

// broken answers the first requests with 502, and then as a proxy's folder has it.
func broken(t *testing.T, times int32, folder string) (url string) {
	t.Helper()
	var asked atomic.Int32
	files := http.FileServer(http.Dir(folder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= times {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestADownloadOfModulesThatFailsIsTriedAgainAndSaid(t *testing.T) {
	opts := workshop(t, withTheme+"\nrequire example.org/theme v1.2.3 // indirect\n")
	quick(t)
	proxy(t)
	t.Setenv("GOPROXY", broken(t, 2, strings.TrimPrefix(os.Getenv("GOPROXY"), "file://")))
	opts.RetryFor = time.Minute
	var said strings.Builder
	if _, err := Build(retry.To(t.Context(), &said), opts); err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`^download Hugo modules failed at attempt 1: example.org/theme@v1.2.3: .*502 Bad Gateway.*; trying again in .*, giving up at .* \(in 1m0s\)\n`)
	if !first.MatchString(said.String()) || !strings.Contains(said.String(), "attempt 2: ") || strings.Contains(said.String(), "attempt 3: ") {
		t.Errorf("it said\n%s", said.String())
	}
	if got := opts.page(t); got != "the theme's page" {
		t.Errorf("got %q", got)
	}
}

func TestADownloadThatFailsForTooLongIsGivenUp(t *testing.T) {
	quick(t)
	program := filepath.Join(t.TempDir(), "npm")
	script := "#!/bin/sh\necho 'npm error code E503'\necho 'npm error 503 Service Unavailable - GET https://registry.example.org/postcss'\nexit 1\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	var told strings.Builder
	_, err := downloaded(retry.To(t.Context(), &told), command{timeout: time.Minute, name: program}, 500*time.Millisecond, "npm ci", lostPackage, explainNpm)
	want := regexp.MustCompile(`^npm ci: code E503\n503 Service Unavailable .*; this was tried \d+ times in \S+, and is for longer with --retry-for$`)
	if err == nil || !want.MatchString(err.Error()) || !strings.HasPrefix(told.String(), "npm ci failed at attempt 1: 503 Service Unavailable - GET https://registry.example.org/postcss; trying again") {
		t.Errorf("it failed with %v, after\n%s", err, told.String())
	}
}

func TestOnlyWhatMayPassIsTriedAgain(t *testing.T) {
	modules := "failed to download modules: failed to get [\"example.org/t\"]: exit status 1\ngo: example.org/t@v1.2.3: reading https://proxy.example.org/t.mod: "
	for said, want := range map[string]bool{
		modules + "502 Bad Gateway": true,
		modules + "Get \"https://proxy.example.org/t.mod\": dial tcp 127.0.0.1:1: connect: connection refused": true,
		modules + "Get \"https://proxy.example.org/t.mod\": net/http: TLS handshake timeout":                   true,
		modules + "404 Not Found":                           false,
		modules + "403 Forbidden":                           false,
		modules + "dial tcp: lookup example: no such host":  false,
		modules + "unknown revision, after 502 Bad Gateway": false,
		"ERROR error building site: connection refused":     false,
	} {
		if got := lostModule(said); (got != "") != want {
			t.Errorf("%s: %q", said, got)
		}
	}
	for said, want := range map[string]bool{
		"npm error code ECONNRESET\n": true, "npm error code E502\n": true, "npm ERR! network request to https://r.example.org/a failed, reason: getaddrinfo EAI_AGAIN r": true,
		"npm error code E404\n": false, "npm error code ENOTFOUND\n": false, "npm error code EINTEGRITY\n": false,
	} {
		if got := lostPackage(said); (got != "") != want {
			t.Errorf("%s: %q", said, got)
		}
	}
}
