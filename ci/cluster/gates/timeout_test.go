package gates

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tazlab.net/castle/ci/cluster/kube"
)

// pullsOf are pulls of which another one ends at each look, up to a number.
func pullsOf(upTo int64) func(context.Context) (kube.Pulls, error) {
	var looks atomic.Int64
	return func(context.Context) (kube.Pulls, error) {
		return kube.Pulls{Going: []string{"longhornio/longhorn-manager:v1.9.0 on worker-1"}, Pulled: int(min(looks.Add(1), upTo))}, nil
	}
}

func TestADeadlineFollowsTheImagesThatArrive(t *testing.T) {
	const timeout = 100 * time.Millisecond
	opens := Condition{"the manager", kube.WaitFunc(func(ctx context.Context, report func(string)) error {
		report("0 of 2 ready")
		select {
		case <-time.After(3 * timeout):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}), ""}
	var said []string
	err := Wait(t.Context(), "storage", []Condition{opens}, Options{Timeout: timeout, Pulls: pullsOf(1 << 30), PullsEvery: timeout / 10,
		Events: func(e Event) { said = append(said, e.Seen) }})
	if err != nil {
		t.Errorf("the wait was given up while images arrived: %v", err)
	}
	if want := "0 of 2 ready; pulling longhornio/longhorn-manager:v1.9.0 on worker-1"; !strings.Contains(strings.Join(said, "\n"), want) {
		t.Errorf("nothing says %q: %q", want, said)
	}
	if last := said[len(said)-2]; last != "0 of 2 ready" {
		t.Errorf("a condition that holds still pulls: %q", last)
	}
}

func TestAPullThatDoesNotGoOnIsNotWaitedForForEver(t *testing.T) {
	const timeout = 100 * time.Millisecond
	began := time.Now()
	err := Wait(t.Context(), "storage", []Condition{{"the manager", kube.WaitFunc(never), "logs"}}, Options{Timeout: timeout, Pulls: pullsOf(3), PullsEvery: timeout / 10})
	if _, late := errors.AsType[*Timeout](err); !late || !strings.Contains(err.Error(), "pulling longhornio/longhorn-manager:v1.9.0 on worker-1") {
		t.Errorf("got %T %v", err, err)
	}
	if took := time.Since(began); took < timeout {
		t.Errorf("given up after %s", took)
	}
}

// An API whose machine has lost its power answers nothing at all.
func TestALookWithoutAnAnswerDoesNotHoldTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Minute
		began := time.Now()
		err := Wait(t.Context(), "storage", []Condition{{"the manager", kube.WaitFunc(never), "logs"}}, Options{Timeout: timeout, PullsEvery: time.Second,
			Pulls: func(ctx context.Context) (kube.Pulls, error) {
				<-ctx.Done()
				return kube.Pulls{}, ctx.Err()
			}})
		if took := time.Since(began); !errors.As(err, new(*Timeout)) || took > timeout+5*lookLimit {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// A registry that refuses is asked again ever less often, which brings no cluster further.
func TestWhatARegistryRefusesIsToldAndKeepsNoWaitAlive(t *testing.T) {
	const timeout = 100 * time.Millisecond
	var looks atomic.Int64
	took := func(pulls func(context.Context) (kube.Pulls, error)) (time.Duration, error) {
		began := time.Now()
		err := Wait(t.Context(), "storage", []Condition{{"the manager", kube.WaitFunc(never), "logs"}}, Options{Timeout: timeout, Pulls: pulls, PullsEvery: timeout / 10})
		return time.Since(began), err
	}
	refuses := func(context.Context) (kube.Pulls, error) {
		now := kube.Pulls{Refused: []string{"nginx:1 on worker-1: toomanyrequests"}}
		if looks.Add(1)%2 == 0 {
			now.Going = []string{"nginx:1 on worker-1"}
		}
		return now, nil
	}
	refused, err := took(refuses)
	if _, late := errors.AsType[*Timeout](err); !late || !strings.Contains(err.Error(), "cannot pull nginx:1 on worker-1: toomanyrequests") {
		t.Errorf("got %T %v", err, err)
	}
	if alive, _ := took(pullsOf(1 << 30)); refused > alive/2 {
		t.Errorf("given up after %s, where images that arrive keep a wait alive for %s", refused, alive)
	}
}

// A container that crashes and whose image is pulled each time brings no cluster further.
func TestImagesKeepAWaitAliveForALimitedTime(t *testing.T) {
	const timeout = 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := Wait(ctx, "storage", []Condition{{"the manager", kube.WaitFunc(never), ""}}, Options{Timeout: timeout, Pulls: pullsOf(1 << 30), PullsEvery: timeout / 10})
	if _, late := errors.AsType[*Timeout](err); !late || ctx.Err() != nil {
		t.Errorf("got %T %v", err, err)
	}
}

// A pod on a node that is not heard of does not come, whatever the condition that waits for it sees.
func TestAWaitTellsWhichNodesAreNotReady(t *testing.T) {
	const timeout = 100 * time.Millisecond
	notReady := func(context.Context) ([]string, error) { return []string{"worker-1: Ready is Unknown", "b", "c"}, nil }
	err := Wait(t.Context(), "storage", []Condition{{"the manager", kube.WaitFunc(func(ctx context.Context, report func(string)) error {
		report("0 of 2 ready")
		return never(ctx, report)
	}), "logs"}}, Options{Timeout: timeout, Pulls: pullsOf(3), NotReady: notReady, PullsEvery: timeout / 10})
	if want := "0 of 2 ready; worker-1: Ready is Unknown; b (and 1 more); pulling longhornio/longhorn-manager:v1.9.0 on worker-1"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
}
