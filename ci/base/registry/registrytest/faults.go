// Package registrytest spoils requests to a registry, for tests of what talks to one.
package registrytest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Mood names a way in which a registry misbehaves.
type Mood string

const (
	Unauthorized    Mood = "unauthorized"      // 401 to any request
	Forbidden       Mood = "forbidden"         // 403 to requests that write
	TooManyRequests Mood = "too-many-requests" // 429 with Retry-After: 1 to requests for manifests and blobs
	ServerError     Mood = "server-error"      // 500 to a PATCH or PUT of a blob upload, its body read
	CutConnection   Mood = "cut-connection"    // a PATCH or PUT of a blob upload with a body: half of it is read, then the connection is closed
	Slow            Mood = "slow"              // any request waits before it is served
)

// Fault applies a mood to the first requests that match.
type Fault struct {
	Mood  Mood
	Times int                      // how many matching requests meet it; below 0: every one
	Match func(*http.Request) bool // narrows the mood's own choice of requests; nil takes all of these
	Delay time.Duration            // of Slow; 0 is one second
}

// Faults stands in front of a registry and spoils requests. Without faults it changes nothing.
type Faults struct {
	next http.Handler

	mu    sync.Mutex
	armed []Fault // Times counts down
	met   map[Mood]int
}

// NewFaults puts faults in front of next.
func NewFaults(next http.Handler, faults ...Fault) *Faults {
	return &Faults{next: next, armed: slices.Clone(faults), met: map[Mood]int{}}
}

// Arm adds a fault, behind those that are still due.
func (f *Faults) Arm(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, fault)
}

// Met says how many requests met a mood so far.
func (f *Faults) Met(mood Mood) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.met[mood]
}

func (f *Faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, ok := f.take(r)
	if !ok {
		f.next.ServeHTTP(w, r)
		return
	}
	switch fault.Mood {
	case Unauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		answer(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
	case Forbidden:
		answer(w, http.StatusForbidden, "DENIED", "requested access to the resource is denied")
	case TooManyRequests:
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusTooManyRequests, "TOOMANYREQUESTS", "too many requests, come back later")
	case ServerError:
		_, _ = io.Copy(io.Discard, r.Body) // so that the client gets the answer, not a broken pipe
		answer(w, http.StatusInternalServerError, "UNKNOWN", "something went wrong with the storage")
	case CutConnection:
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
		panic(http.ErrAbortHandler) // net/http closes the connection, without an answer and without a log line
	case Slow:
		delay := fault.Delay
		if delay == 0 {
			delay = time.Second
		}
		select {
		case <-time.After(delay):
			f.next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// take finds the first fault that is due for r and counts it.
func (f *Faults) take(r *http.Request) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.armed {
		fault := &f.armed[i]
		if fault.Times == 0 || !fault.Mood.meets(r) || fault.Match != nil && !fault.Match(r) {
			continue
		}
		if fault.Times > 0 {
			fault.Times--
		}
		f.met[fault.Mood]++
		return *fault, true
	}
	return Fault{}, false
}

func (m Mood) meets(r *http.Request) bool {
	upload := strings.Contains(r.URL.Path, "/blobs/uploads/") && (r.Method == http.MethodPatch || r.Method == http.MethodPut)
	switch m {
	case Forbidden:
		return r.Method != http.MethodGet && r.Method != http.MethodHead
	case TooManyRequests:
		return strings.Contains(r.URL.Path, "/manifests/") || strings.Contains(r.URL.Path, "/blobs/")
	case ServerError:
		return upload
	case CutConnection:
		return upload && r.ContentLength > 1
	default:
		return true
	}
}

// answer is an error in the distribution specification's form.
func answer(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message) // a client that went away is no failure of ours
}
