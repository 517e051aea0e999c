package registrytest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/registry"
)

func newFaultyServer(t *testing.T, faults ...Fault) (*httptest.Server, *Faults) {
	t.Helper()
	h, err := registry.New(registry.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	front := NewFaults(h, faults...)
	server := httptest.NewServer(front)
	t.Cleanup(server.Close)
	return server, front
}

func TestAFaultMeetsTheFirstMatchingRequestsAndIsCounted(t *testing.T) {
	for _, c := range []struct {
		mood         Mood
		method, path string
		status       int
		other        string // a request that the mood leaves alone
	}{
		{Unauthorized, "GET", "/v2/", 401, ""},
		{Forbidden, "POST", "/v2/blog/blobs/uploads/", 403, "/v2/"},
		{TooManyRequests, "GET", "/v2/blog/manifests/v1", 429, "/v2/"},
		{ServerError, "PATCH", "/v2/blog/blobs/uploads/" + strings.Repeat("0", 32), 500, "/v2/"},
	} {
		t.Run(string(c.mood), func(t *testing.T) {
			server, faults := newFaultyServer(t, Fault{Mood: c.mood, Times: 2})
			if c.other != "" {
				resp, body := do(t, "GET", server.URL+c.other, nil)
				expect(t, resp, body, 200, "")
			}
			for i, want := range []bool{true, true, false} {
				resp, _ := do(t, c.method, server.URL+c.path, []byte("chunk"))
				if got := resp.StatusCode == c.status; got != want {
					t.Errorf("request %d: %s", i+1, resp.Status)
				}
				if c.mood == TooManyRequests && want && resp.Header.Get("Retry-After") != "1" {
					t.Errorf("Retry-After %q", resp.Header.Get("Retry-After"))
				}
			}
			if faults.Met(c.mood) != 2 {
				t.Errorf("met %d times", faults.Met(c.mood))
			}
		})
	}
}

func TestACutConnectionGivesNoAnswer(t *testing.T) {
	server, faults := newFaultyServer(t)
	resp, _ := do(t, "POST", server.URL+"/v2/blog/blobs/uploads/", nil)
	location := server.URL + resp.Header.Get("Location")
	faults.Arm(Fault{Mood: CutConnection, Times: 1})
	req, err := http.NewRequest("PATCH", location, bytes.NewReader(make([]byte, 1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		t.Fatalf("got %s", resp.Status)
	}
	if faults.Met(CutConnection) != 1 {
		t.Errorf("met %d times", faults.Met(CutConnection))
	}
	resp, body := do(t, "PATCH", location, []byte("whole"))
	expect(t, resp, body, 202, "")
}

func TestASlowRegistryAnswersInTheEnd(t *testing.T) {
	const delay = 50 * time.Millisecond
	server, _ := newFaultyServer(t, Fault{Mood: Slow, Times: -1, Delay: delay})
	start := time.Now()
	resp, body := do(t, "GET", server.URL+"/v2/", nil)
	expect(t, resp, body, 200, "")
	if took := time.Since(start); took < delay {
		t.Errorf("answered after %s", took)
	}
}

func TestAFaultMayChooseItsRequests(t *testing.T) {
	server, _ := newFaultyServer(t, Fault{Mood: Unauthorized, Times: -1, Match: func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/manifests/v2")
	}})
	resp, body := do(t, "GET", server.URL+"/v2/blog/manifests/v1", nil)
	expect(t, resp, body, 404, "")
	for range 3 {
		resp, body = do(t, "GET", server.URL+"/v2/blog/manifests/v2", nil)
		expect(t, resp, body, 401, "UNAUTHORIZED")
	}
}

func TestTheServerErrorLetsTheClientFinishItsBody(t *testing.T) {
	server, _ := newFaultyServer(t, Fault{Mood: ServerError, Times: 1})
	body := io.LimitReader(zeros{}, 8<<20)
	req, err := http.NewRequest("PATCH", server.URL+"/v2/blog/blobs/uploads/"+strings.Repeat("0", 32), body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 500 {
		t.Errorf("got %s", resp.Status)
	}
}

func do(t *testing.T, method, url string, body []byte) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func expect(t *testing.T, resp *http.Response, body string, status int, code string) {
	t.Helper()
	if resp.StatusCode != status || !strings.Contains(body, code) {
		t.Fatalf("got %s %s, want %d %s", resp.Status, body, status, code)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
