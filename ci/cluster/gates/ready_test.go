package gates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

func never(ctx context.Context, _ func(string)) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestEventsTellWhatChanges(t *testing.T) {
	var got []string
	condition := row{"the moon", waiterFunc(func(_ context.Context, report func(string)) error {
		for _, seen := range []string{"half", "half", "full"} {
			report(seen)
		}
		return nil
	}), "the sky"}
	err := run(t.Context(), "night", []Condition{condition}, time.Minute, func(e Event) {
		got = append(got, fmt.Sprintf("%s/%s %s %s %s", e.Gate, e.Condition, e.Phase, e.Seen, e.Next))
	})
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

func TestEveryConditionThatIsLateIsNamed(t *testing.T) {
	late := []Condition{row{"a", waiterFunc(never), ""}, row{"b", waiterFunc(never), "logs"}}
	err := run(t.Context(), "test", late, 100*time.Millisecond, nil)
	want := "waiting for a: nothing seen yet, 100ms\nwaiting for b: nothing seen yet, 100ms; look at: logs"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestTheCallersDeadlineIsATimeoutToo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := run(ctx, "test", []Condition{row{"a", waiterFunc(never), ""}}, time.Minute, nil)
	if _, ok := errors.AsType[*Timeout](err); !ok {
		t.Errorf("got %T %v, want a *Timeout", err, err)
	}
}

func TestACancelledRunIsNotATimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	err := run(ctx, "test", []Condition{row{"a", waiterFunc(never), ""}, row{"b", waiterFunc(never), ""}}, time.Minute, nil)
	if err == nil || err.Error() != "gate test: context canceled" || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error once", err)
	}
}

func TestAQuestionThatHangsDelaysNoOther(t *testing.T) {
	question := asking{every: 20 * time.Millisecond, limit: time.Minute, atOnce: 3}
	started := time.Now()
	answered := make(chan int, 3)
	err := question.ask(t.Context(), func(ctx context.Context) answer {
		answered <- 1
		if len(answered) < 3 {
			<-ctx.Done()
			return answer{err: ctx.Err()}
		}
		return answer{ok: true}
	}, func(string) {})
	if took := time.Since(started); err != nil || took > 5*time.Second {
		t.Errorf("answered after %s, %v", took, err)
	}
}
