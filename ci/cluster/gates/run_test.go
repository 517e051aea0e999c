package gates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/redact/redacttest"
	"tazlab.net/castle/ci/cluster/kube"
)

func never(ctx context.Context, _ func(string)) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestEventsTellWhatChanges(t *testing.T) {
	var got []string
	condition := Condition{"the moon", kube.WaitFunc(func(_ context.Context, report func(string)) error {
		for _, seen := range []string{"half", "half", "full"} {
			report(seen)
		}
		return nil
	}), "the sky"}
	err := Wait(t.Context(), "night", []Condition{condition}, Options{Timeout: time.Minute, Events: func(e Event) {
		got = append(got, fmt.Sprintf("%s/%s %s %s %s", e.Gate, e.Condition, e.Phase, e.Seen, e.Next))
	}})
	want := []string{
		"night/ start  ",
		"night/the moon start  the sky",
		"night/the moon waiting half the sky",
		"night/the moon waiting full the sky",
		"night/the moon end full the sky",
		"night/ end  ",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v\n%q\nwant\n%q", err, got, want)
	}
}

// Where the secret straddles the place of the cut, redacting what is left would find nothing.
func TestWhatIsSeenIsRedactedBeforeItIsCut(t *testing.T) {
	secret := redacttest.Token
	redact.Add(secret)
	for _, half := range []int{len(secret) / 3, len(secret) / 2, len(secret) - 1} {
		leak := strings.Repeat("x", seenLimit-len("...")-half) + secret + strings.Repeat("y", seenLimit)
		condition := Condition{"the moon", kube.WaitFunc(func(ctx context.Context, report func(string)) error {
			report(leak)
			return never(ctx, report)
		}), ""}
		var kept strings.Builder
		err := Wait(t.Context(), "night", []Condition{condition}, Options{
			Timeout: 50 * time.Millisecond,
			Events:  func(e Event) { fmt.Fprintln(&kept, e.Seen, e.Err) },
		})
		text := kept.String() + err.Error()
		if !strings.Contains(text, "xxx") || strings.Contains(text, secret[:len(secret)/3]) {
			t.Errorf("cut %d bytes into the secret, this is kept:\n%s", half, text)
		}
	}
}

func TestEveryConditionThatIsLateIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := []Condition{Condition{"a", kube.WaitFunc(never), ""}, Condition{"b", kube.WaitFunc(never), "logs"}}
		err := Wait(t.Context(), "test", late, Options{Timeout: 100 * time.Millisecond})
		want := "waiting for a: nothing seen yet, 100ms\nwaiting for b: nothing seen yet, 100ms; look at: logs"
		if err == nil || err.Error() != want {
			t.Errorf("got\n%v\nwant\n%s", err, want)
		}
	})
}

func TestTheCallersDeadlineIsATimeoutToo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := Wait(ctx, "test", []Condition{Condition{"a", kube.WaitFunc(never), ""}}, Options{Timeout: time.Minute})
	if _, ok := errors.AsType[*Timeout](err); !ok {
		t.Errorf("got %T %v, want a *Timeout", err, err)
	}
}

func TestACancelledRunIsNotATimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	err := Wait(ctx, "test", []Condition{Condition{"a", kube.WaitFunc(never), ""}, Condition{"b", kube.WaitFunc(never), ""}}, Options{Timeout: time.Minute})
	if err == nil || err.Error() != "gate test: context canceled" || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error once", err)
	}
}
