package apiproxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pause is between two tries of a request.
	pause = 250 * time.Millisecond
	// maxBody is more than etcd takes of one object.
	maxBody = 16 << 20
)

// patient sends a request again while the API is out of reach.
type patient struct {
	transport http.RoundTripper
	options   Options

	mu    sync.Mutex
	since time.Time // since when without a break; zero: it answered last
	over  bool      // the patience is at its end, and that was told
}

// RoundTrip is an http.RoundTripper's. Sent again is what never left, for want of a connection, and what changes nothing.
func (p *patient) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := whole(request)
	if err != nil {
		return nil, err
	}
	for {
		var left atomic.Bool
		trace := &httptrace.ClientTrace{
			GetConn: func(string) { left.Store(false) }, // also where net/http knows that it was not acted on, and sends it anew
			GotConn: func(httptrace.GotConnInfo) { left.Store(true) },
		}
		try := request.Clone(httptrace.WithClientTrace(request.Context(), trace))
		if body != nil {
			// With GetBody, a connection that was closed while nobody used it is another reason that net/http sends anew by itself.
			try.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
			try.Body, _ = try.GetBody()
		}
		response, err := p.transport.RoundTrip(try)
		if err == nil {
			p.answered()
			return response, nil
		}
		if request.Context().Err() != nil || left.Load() && !changesNothing(request) {
			return nil, err
		}
		if !p.waits(err) {
			return nil, brief(err)
		}
		select {
		case <-request.Context().Done():
			return nil, request.Context().Err()
		case <-time.After(pause):
		}
	}
}

// brief leaves out of a network's error between which ports it was, which differs from try to try.
func brief(err error) error {
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return operation.Err
	}
	return err
}

func changesNothing(request *http.Request) bool {
	return request.Method == http.MethodGet || request.Method == http.MethodHead
}

// whole reads a request's body, which a try uses up.
func whole(request *http.Request) ([]byte, error) {
	if request.Body == nil || request.Body == http.NoBody {
		return nil, nil
	}
	defer request.Body.Close()
	body, err := io.ReadAll(io.LimitReader(request.Body, maxBody+1))
	if len(body) > maxBody {
		return nil, fmt.Errorf("a request of more than %d MiB", maxBody>>20)
	}
	return body, err
}

func (p *patient) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return
	}
	if !p.over && p.options.Over != nil {
		p.options.Over(nil)
	}
	p.since, p.over = time.Time{}, false
}

// waits tells whether a request that met the error is to wait.
func (p *patient) waits(err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		p.since = time.Now()
	}
	switch {
	case time.Since(p.since) < p.options.Patience:
		if p.options.Waits != nil {
			p.options.Waits(brief(err).Error())
		}
		return true
	case !p.over:
		p.over = true
		if p.options.Over != nil {
			p.options.Over(brief(err))
		}
	}
	return false
}
