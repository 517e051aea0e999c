package bounded

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

func TestAnAnswerEndsAtItsLimit(t *testing.T) {
	for length, whole := range map[int]bool{0: true, 99: true, 100: true, 101: false, 1 << 20: false} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				packed := gzip.NewWriter(w)
				fmt.Fprint(packed, strings.Repeat("x", length))
				packed.Close()
			}))
			defer server.Close()
			response, err := (&http.Client{Transport: Transport{http.DefaultTransport, 100}}).Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			got, err := io.ReadAll(iotest.HalfReader(response.Body))
			switch {
			case whole && (err != nil || len(got) != length):
				t.Errorf("got %d bytes, %v", len(got), err)
			case !whole && (len(got) != 100 || err == nil || !strings.Contains(err.Error(), "is longer than 100 bytes")):
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
}
