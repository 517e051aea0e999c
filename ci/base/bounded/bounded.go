// Package bounded keeps what another machine answers from filling this one's memory.
package bounded

import (
	"fmt"
	"io"
	"net/http"
)

// Transport is a client's transport whose answers end in an error where their bodies are longer than Limit, in bytes after
// decompression.
type Transport struct {
	Next  http.RoundTripper
	Limit int64
}

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.Next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &body{ReadCloser: response.Body, left: t.Limit, err: fmt.Errorf("the answer of %s is longer than %d bytes", request.URL.Host, t.Limit)}
	return response, nil
}

// body gives no byte that is beyond what is left.
type body struct {
	io.ReadCloser
	left int64
	err  error
}

func (b *body) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if int64(n) > b.left {
		return int(b.left), b.err
	}
	b.left -= int64(n)
	return n, err
}
