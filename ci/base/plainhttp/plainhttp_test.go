package plainhttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestCredentialsGoOverPlainHTTPToThisMachineAndToNamedHostsOnly(t *testing.T) {
	named := []string{"git:3000", "registry", "10.0.0.5:80", "[fd00::1]:5000"}
	for address, want := range map[string]bool{
		"https://example.org": true, "https://10.0.0.9:8443/x": true, "ssh://git@example.org/x": true,
		"http://localhost:3000/x": true, "http://127.0.0.1": true, "http://[::1]:5000": true, "http://127.8.9.1:1": true,
		"http://git:3000/x": true, "http://registry/v2/": true, "http://registry:80": true,
		"http://10.0.0.5": true, "http://[fd00::1]:5000": true,
		"http://example.org": false, "http://git": false, "http://git:3001": false, "http://registry:5000": false,
		"http://10.0.0.9": false, "http://localhost.example.org": false, "http://127.0.0.1.example.org": false,
		"http://0.0.0.0:80": false,
	} {
		parsed, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := Allowed(parsed, named); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}

func TestARedirectTakesNoCredentialsToAnotherServer(t *testing.T) {
	heard := ""
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		heard += r.Header.Get("Authorization") + string(body)
	}))
	defer other.Close()
	var first *httptest.Server
	first = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := map[string]string{
			"/same": first.URL + "/there", "/other": other.URL, "/loop": first.URL + "/loop",
			"/plain": strings.Replace(first.URL, "https", "http", 1),
		}[r.URL.Path]
		if to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		}
	}))
	defer first.Close()
	client := first.Client()
	client.CheckRedirect = SameServer
	for path, want := range map[string]string{
		"/same": "", "/other": "does not get the credentials", "/plain": "does not get the credentials", "/loop": "without end",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, first.URL+path, strings.NewReader("canary"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "canary")
		response, err := client.Do(request)
		if err == nil {
			response.Body.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if heard != "" {
		t.Errorf("the other server heard %q", heard)
	}
}
