// Package waittest runs a wait in the background of a test, so that the test can make happen what is waited for and look
// at what the wait says meanwhile.
package waittest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"tazlab.net/castle/ci/test/tell"
)

// patience is how long a test waits for what ought to come at once; only a test that fails takes as long.
const patience = 30 * time.Second

// Wait is a wait in the background.
type Wait struct {
	t     testing.TB
	ended chan error
	fresh chan struct{} // holds a token when something new was seen

	mutex sync.Mutex
	seen  []string
}

// Begin starts a wait, which has to call saw with all that it reports. Its context ends with the test.
func Begin(t testing.TB, wait func(ctx context.Context, saw func(string)) error) *Wait {
	w := &Wait{t: t, fresh: make(chan struct{}, 1), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() { w.ended <- wait(ctx, w.saw) }()
	return w
}

func (w *Wait) saw(text string) {
	w.mutex.Lock()
	w.seen = append(w.seen, text)
	w.mutex.Unlock()
	select {
	case w.fresh <- struct{}{}:
	default:
	}
}

// history is all that was seen, a line each.
func (w *Wait) history() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return strings.Join(w.seen, "\n")
}

// has says whether a report with the text in it was made.
func (w *Wait) has(text string) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, seen := range w.seen {
		if strings.Contains(seen, text) {
			return true
		}
	}
	return false
}

// Sees waits until the wait has reported the text.
func (w *Wait) Sees(text string) {
	w.t.Helper()
	deadline := time.After(patience)
	for !w.has(text) {
		select {
		case <-w.fresh:
		case err := <-w.ended:
			w.t.Fatalf("ended with %v before it saw %q:\n%s", err, text, w.history())
		case <-deadline:
			w.t.Fatalf("never saw %q:\n%s", text, w.history())
		}
	}
	tell.Observation(w.t, 0, "the wait saw %q", text)
}

// StaysShut fails when the wait ends within d, which is to be several times what it needs to notice something.
func (w *Wait) StaysShut(d time.Duration) {
	w.t.Helper()
	select {
	case err := <-w.ended:
		w.t.Fatalf("ended with %v, and should go on waiting", err)
	case <-time.After(d):
	}
}

// Opens waits for the end of the wait, which must be a good one, and returns how long that took.
func (w *Wait) Opens() time.Duration {
	w.t.Helper()
	started := time.Now()
	select {
	case err := <-w.ended:
		if err != nil {
			w.t.Fatalf("the wait failed: %v", err)
		}
	case <-time.After(patience):
		w.t.Fatalf("still waiting after %s:\n%s", patience, w.history())
	}
	return time.Since(started)
}

// Fails waits for the end of the wait, which must be a bad one.
func (w *Wait) Fails() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		if err == nil {
			w.t.Fatal("the wait ended well")
		}
		return err
	case <-time.After(patience):
		w.t.Fatalf("did not fail in %s:\n%s", patience, w.history())
		return nil
	}
}
