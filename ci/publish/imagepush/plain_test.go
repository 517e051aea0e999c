package imagepush

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A registry in the house, at a private address, that speaks HTTP.
func TestAPasswordIsNotSentInTheClear(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var heard []string
	spied := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		heard = append(heard, r.Header.Get("Authorization"))
		mu.Unlock()
		w.ServeHTTP(rw, r)
	}))
	t.Cleanup(spied.Close)
	layout := newLayout(t, newImage(t))
	for _, registry := range []string{"192.168.1.5:5000", "10.0.0.1:5000"} {
		options := w.options(layout, "v1")
		options.Reference, options.Transport = registry+"/team/blog:v1", reroutedTo(spied).Transport
		_, err := Push(t.Context(), options)
		if err == nil || !strings.Contains(err.Error(), "a password is not sent in the clear") {
			t.Errorf("%s: %v", registry, err)
		}
		if all := strings.Join(heard, ""); all != "" {
			t.Fatalf("%s heard %q", registry, all)
		}
		options.PlainHTTP = []string{registry}
		if _, err := Push(t.Context(), options); err != nil {
			t.Errorf("%s, named as a plain one: %v", registry, err)
		}
		mu.Lock()
		heard = nil
		mu.Unlock()
	}
}
