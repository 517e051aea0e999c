package hypervisor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/retry"
)

func TestOnlyMoodsOfProxmoxPass(t *testing.T) {
	for text, want := range map[string]bool{
		"error stopping VM: received an HTTP 500 response - Reason: can't lock file '/var/lock/qemu-server/lock-521.conf' - got timeout ()": true,
		"error waiting for VM destroy: cfs-lock 'storage-local-lvm' error: got lock request timeout":                                        true,
		"received an HTTP 596 response - Reason: Connection timed out":                                                                      true,
		"received an HTTP 403 response - Reason: Permission check failed (/vms/521, VM.Allocate)":                                           false,
		"received an HTTP 500 response - Reason: storage 'local-lvm' does not exist":                                                        false,
	} {
		if got := Passes(errors.New(text)); got != want {
			t.Errorf("%t: %s", got, text)
		}
	}
}

func TestWhatPassesIsOutlastedAndTheErrorIsThatOfTheLastTry(t *testing.T) {
	locked, broken := errors.New("can't lock file"), errors.New("no such VM")
	for name, c := range map[string]struct {
		errs  []error // of one try after the other
		want  error
		tries int
	}{
		"a mood that passes": {[]error{locked, locked, nil}, nil, 3},
		"a mood that stays":  {[]error{locked, locked, locked, nil}, locked, 3},
		"what does not pass": {[]error{locked, broken, nil}, broken, 2},
		"broken at last":     {[]error{locked, locked, broken}, broken, 3},
		"nothing in the way": {[]error{nil}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			var said strings.Builder
			err := Patience{Tries: 3}.Outlast(retry.To(t.Context(), &said), Passes, func() error {
				tries++
				return c.errs[tries-1]
			})
			if !errors.Is(err, c.want) || tries != c.tries {
				t.Errorf("%v after %d tries, want %v after %d", err, tries, c.want, c.tries)
			}
			if n := strings.Count(said.String(), "can't lock file; trying again in"); n != c.tries-1 {
				t.Errorf("%d repetitions are said in %q, want %d", n, said.String(), c.tries-1)
			}
		})
	}
}

func TestAnInterruptionGivesTheErrorOfWhatWasInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := errors.New("got lock timeout, and the run was interrupted")
	err := Patience{Tries: 3, Pause: time.Hour}.Outlast(ctx, Passes, func() error {
		cancel()
		return interrupted
	})
	if !errors.Is(err, interrupted) {
		t.Errorf("%v, want %v", err, interrupted)
	}
}
