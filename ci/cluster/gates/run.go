// Package gates holds what a cluster must show before the next step may start: conditions, gathered into gates, each of
// which is a table in gates.go. A condition watches what can be watched and asks again and again where nothing can be
// watched; it never sleeps for a fixed time and never repairs what it waits for.
package gates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
)

// Condition is something that a cluster must show.
type Condition struct {
	Name   string // what is waited for, as it stands after "waiting for"
	Waiter        // how that is seen
	Next   string // the command that shows more
}

// Waiter is a condition without its name.
type Waiter interface {
	// Wait returns nil as soon as the condition holds. It reports what it sees, the last report being the newest. It
	// returns the context's error when that ends first, an *Unproven where it can see no more, and any other error only where waiting longer
	// cannot help.
	Wait(ctx context.Context, report func(lastSeen string)) error
}

// Phase is where a gate or a condition stands.
type Phase string

// The phases, in their order. Waiting comes with every change of what is seen.
const (
	PhaseStart   Phase = "start"
	PhaseWaiting Phase = "waiting"
	PhaseEnd     Phase = "end"
)

// Event says how a wait goes on.
type Event struct {
	Time      time.Time
	Gate      string
	Condition string // empty: the gate as a whole
	Phase     Phase
	Seen      string        // last thing seen, at most seenLimit bytes; empty for a gate
	Elapsed   time.Duration // since the gate was reached
	Next      string        // what to look at, a command
	Err       error         // at the end: why it does not hold; nil when it does
	Unproven  bool          // at the end: it holds, but for what was seen last
}

// seenLimit bounds what is kept of a message that some server wrote, so that an event fits into one atomic write.
const seenLimit = 600

// Options are how a wait goes on.
type Options struct {
	// Timeout is how long, and where Pulls is given, how long after the last image that arrived or was begun with.
	Timeout time.Duration
	// Pulls says which images the nodes pull; Run asks the cluster where this is nil. It is asked every PullsEvery, 10 s where that is 0.
	Pulls      func(context.Context) (kube.Pulls, error)
	PullsEvery time.Duration
	// NotReady says which nodes are not, and is asked as often; nil where no condition has to be told what that means for it.
	NotReady func(context.Context) ([]string, error)
	// Events, which may be nil, is called from one goroutine at a time.
	Events func(Event)
}

// Run waits until all conditions of a gate hold. They are independent, so all are waited for at the same time.
//
// The error joins a *Timeout for every condition that did not hold in time, or, when a condition cannot be met by
// waiting, its *Impossible alone: the other waits end with it. When ctx is cancelled, the error wraps ctx's. A deadline
// of ctx counts as the timeout, if it is the earlier one.
func Run(ctx context.Context, gate string, env Env, options Options) error {
	conditions, err := Conditions(gate, env)
	if err != nil {
		return err
	}
	if env.Kube != nil && !env.LookOnly {
		if options.Pulls == nil {
			options.Pulls = env.Kube.Pulls
		}
		if options.NotReady == nil && gate != layers.Platform { // whose own condition it is
			options.NotReady = env.Kube.NotReady
		}
	}
	return Wait(ctx, gate, conditions, options)
}

func (o Options) pullsEvery() time.Duration { return cmp.Or(o.PullsEvery, pullsEvery) }

// Wait is Run for conditions of the caller's own; gate is what they are called together.
func Wait(ctx context.Context, gate string, conditions []Condition, options Options) error {
	r := &runner{gate: gate, started: time.Now(), options: options}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	r.send(Event{Phase: PhaseStart})
	failures := make([]error, len(conditions))
	var group sync.WaitGroup
	for i, condition := range conditions {
		group.Go(func() {
			failures[i] = r.wait(ctx, waiting, condition)
			if _, hopeless := errors.AsType[*Impossible](failures[i]); hopeless {
				cancel(errStopped)
			}
		})
	}
	patience, done := context.WithCancel(waiting)
	var clock sync.WaitGroup
	clock.Go(func() { r.patience(patience, func() { cancel(context.DeadlineExceeded) }) })
	group.Wait()
	done()
	clock.Wait()

	err := verdict(failures)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		err = fmt.Errorf("gate %s: %w", gate, context.Cause(ctx))
	}
	r.send(Event{Phase: PhaseEnd, Err: err})
	return err
}

// verdict leaves out what ended only because something else did.
func verdict(failures []error) error {
	var hopeless, others []error
	for _, err := range failures {
		if _, ok := errors.AsType[*Impossible](err); ok {
			hopeless = append(hopeless, err)
		} else if err != nil && !errors.Is(err, errStopped) {
			others = append(others, err)
		}
	}
	if len(hopeless) > 0 {
		return errors.Join(hopeless...)
	}
	return errors.Join(others...)
}

// runner keeps what the conditions of one run share.
type runner struct {
	gate    string
	started time.Time

	options Options
	mutex   sync.Mutex // of options.Events

	besideMutex sync.Mutex
	beside      string   // what of the nodes explains a wait
	onBeside    []func() // have the conditions say so
}

// wait waits for one condition. parent is the caller's context, waiting the one that also ends by deadline.
func (r *runner) wait(parent, waiting context.Context, condition Condition) error {
	about := Event{Condition: condition.Name, Next: condition.Next}
	unproven := false
	send := func(phase Phase, seen string, err error) {
		event := about
		event.Phase, event.Seen, event.Err, event.Unproven = phase, seen, err, unproven
		r.send(event)
	}

	send(PhaseStart, "", nil)
	var mutex sync.Mutex
	var seen, last string
	ended := false
	say := func() {
		if now := shorten(r.withBeside(seen)); now != last && !ended {
			last = now
			send(PhaseWaiting, now, nil)
		}
	}
	r.besideMutex.Lock()
	r.onBeside = append(r.onBeside, func() {
		mutex.Lock()
		defer mutex.Unlock()
		say()
	})
	r.besideMutex.Unlock()
	err := condition.Wait(waiting, func(now string) {
		mutex.Lock()
		defer mutex.Unlock()
		// Before it is cut to the length that an event has room for: no redactor knows a half of a secret again.
		seen = redact.Text(now)
		say()
	})
	mutex.Lock()
	defer mutex.Unlock()
	ended = true
	if doubt, is := errors.AsType[*Unproven](err); is {
		unproven, err, seen = true, nil, redact.Text(doubt.Seen)
	}
	if err == nil {
		last = shorten(seen)
	}
	err = r.explain(parent, waiting, about, last, err)
	send(PhaseEnd, last, err)
	return err
}

// explain turns the error of a wait into the one that a person reads.
func (r *runner) explain(parent, waiting context.Context, about Event, last string, err error) error {
	failure := Failure{Gate: r.gate, Condition: about.Condition, Seen: last, Elapsed: time.Since(r.started), Next: about.Next}
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(waiting), context.DeadlineExceeded):
		return &Timeout{Failure: failure}
	case parent.Err() != nil:
		return context.Cause(parent)
	case waiting.Err() == nil:
		return &Impossible{Failure: failure, Cause: err}
	default:
		return errStopped
	}
}

func (r *runner) send(event Event) {
	if r.options.Events == nil {
		return
	}
	event.Time, event.Gate, event.Elapsed = time.Now(), r.gate, time.Since(r.started)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.options.Events(event)
}
