// Package retry repeats what fails in a way that may pass. It reports each failure to the person who waits: as a line, and as a step of
// the trace that lasts as long as the pause.
package retry

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Policy is how long something is tried.
type Policy struct {
	Doing  string // for the person who waits: "the push to branch main"
	Pauses backoff.BackOff
	Tries  uint               // in all; 0: any number
	For    time.Duration      // no attempt begins so long after the first failure, nor after the context's deadline; 0: only Tries counts
	Seen   func(error) string // what failed, without secrets; nil: the error's text
}

// Do tries until an attempt succeeds, its error is Permanent, or the policy ends it. The error is that of the last attempt, or the cause of
// the context's end where that came in a pause.
func (p Policy) Do(ctx context.Context, attempt func() error) error {
	attempts := 0
	end := &ending{BackOff: p.Pauses}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		attempts++
		err := attempt()
		if err != nil && end.until.IsZero() && p.For > 0 {
			end.until = time.Now().Add(p.For)
			if deadline, has := ctx.Deadline(); has && deadline.Before(end.until) {
				end.until = deadline
			}
		}
		if after, asked := errors.AsType[*backoff.RetryAfterError](err); asked && end.before(after.Duration) {
			err = Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(end), backoff.WithMaxTries(p.Tries), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, pause time.Duration) {
			seen := err.Error()
			if p.Seen != nil {
				seen = p.Seen(err)
			}
			Say(ctx, Notice{Doing: p.Doing, Attempts: attempts, Most: p.Tries, Seen: seen, Pause: pause, Until: end.until})
		}))
	if permanent, is := errors.AsType[*backoff.PermanentError](err); is { // of the last try, which Retry hands over as it is
		return permanent.Unwrap()
	}
	return err
}

// ending are pauses that end before a time, where there is one.
type ending struct {
	backoff.BackOff
	until time.Time
}

// NextBackOff is the next pause, none where it would last too long.
func (e *ending) NextBackOff() time.Duration {
	if pause := e.BackOff.NextBackOff(); !e.before(pause) {
		return pause
	}
	return backoff.Stop
}

func (e *ending) before(pause time.Duration) bool {
	return !e.until.IsZero() && time.Until(e.until) < pause
}

// Growing are pauses from first to most, with jitter.
func Growing(first, most time.Duration) *backoff.ExponentialBackOff {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = first, most
	return pauses
}

// Permanent marks an error after which there is no other attempt.
func Permanent(err error) error { return backoff.Permanent(err) }

// After marks an error after which the next attempt is due in a time that somebody asked for.
func After(err error, wait time.Duration) error { return &afterError{err, wait} }

type afterError struct {
	error
	wait time.Duration
}

// Unwrap also tells package backoff how long to pause.
func (e *afterError) Unwrap() []error {
	return []error{e.error, &backoff.RetryAfterError{Duration: e.wait}}
}
