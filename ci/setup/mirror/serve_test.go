package mirror

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// serve runs Serve on the cache for as long as the test lasts, and gives its host and port.
func serve(t *testing.T, cache string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, ServeOptions{Cache: cache, Addr: "127.0.0.1:0", Ready: func(addr net.Addr) { ready <- addr }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case addr := <-ready:
		return addr.String()
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return ""
	}
}

func request(t *testing.T, method, url string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func TestAnEngineFindsImagesOfAllRegistriesAtTheMirrorByTheirPath(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	built := w.build(cache, theList(), "golang", "hugo", "nginx")
	host := serve(t, cache)
	// BuildKit and containerd add the registry that they mean as ns.
	for i, path := range []string{
		"library/golang/manifests/1.26.4-bookworm?ns=docker.io",
		"gohugoio/hugo/manifests/v0.165.0?ns=ghcr.io",
		"library/nginx/manifests/1.30.5",
	} {
		for _, method := range []string{http.MethodHead, http.MethodGet} {
			response, _ := request(t, method, "http://"+host+"/v2/"+path)
			if response.StatusCode != http.StatusOK || response.Header.Get("Docker-Content-Digest") != built[i].Digest {
				t.Errorf("%s %s: %s, digest %s, want %s", method, path, response.Status, response.Header.Get("Docker-Content-Digest"), built[i].Digest)
			}
		}
	}
	if response, _ := request(t, http.MethodGet, "http://"+host+"/v2/engine/manifests/v0.19.10?ns=registry.dagger.io"); response.StatusCode != http.StatusNotFound {
		t.Errorf("an image that is not there: %s", response.Status)
	}
}

func TestNobodyPushesToAMirrorThatIsServed(t *testing.T) {
	host := serve(t, t.TempDir())
	for method, path := range map[string]string{
		http.MethodPost:   "library/golang/blobs/uploads/",
		http.MethodPut:    "library/golang/manifests/1.26.4-bookworm",
		http.MethodDelete: "library/golang/manifests/1.26.4-bookworm",
	} {
		if response, body := request(t, method, "http://"+host+"/v2/"+path); response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s %s", method, response.Status, body)
		}
	}
}

func TestABuildShowsAtOnceInAMirrorThatIsServed(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	host := serve(t, cache)
	w.build(cache, theList(), "golang", "hugo", "nginx")
	if response, _ := request(t, http.MethodGet, "http://"+host+"/v2/library/nginx/manifests/1.30.5"); response.StatusCode != http.StatusOK {
		t.Error(response.Status)
	}
}

func TestAnAddressInUseIsAnErrorThatSaysSo(t *testing.T) {
	host := serve(t, t.TempDir())
	err := Serve(context.Background(), ServeOptions{Cache: t.TempDir(), Addr: host})
	if err == nil || !strings.Contains(err.Error(), host+" is in use, maybe by another mirror") {
		t.Errorf("got %v", err)
	}
}
