//go:build linux

package world

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestAWorldThatDoesNotComeUpSaysWhatItWaitsForAndEnds(t *testing.T) {
	var log strings.Builder
	ended := make(chan int, 1)
	endAfter(time.Millisecond, &log, func(code int) { ended <- code })
	select {
	case code := <-ended:
		if code != 1 || !strings.Contains(log.String(), "did not come up within 1ms") || !strings.Contains(log.String(), "TestAWorldThatDoesNotComeUp") {
			t.Errorf("it ended with %d and said:\n%s", code, log.String())
		}
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}

func TestAWorldThatIsUpGoesOn(t *testing.T) {
	ended := make(chan int, 1)
	endAfter(50*time.Millisecond, io.Discard, func(code int) { ended <- code })()
	select {
	case <-ended:
		t.Error("it was ended")
	case <-time.After(200 * time.Millisecond):
	}
}
