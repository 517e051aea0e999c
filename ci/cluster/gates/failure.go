package gates

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Failure is what is known about a condition that was not met.
type Failure struct {
	Gate      string
	Condition string
	Seen      string // last thing seen
	Elapsed   time.Duration
	Next      string // what to look at, a command
}

// Timeout is the error of a condition that did not hold in time.
type Timeout struct{ Failure }

// Impossible is the error of a condition that no waiting can meet.
type Impossible struct {
	Failure
	Cause error
}

// Unproven is the error of a condition that holds as far as the cluster says, and of which something could not be seen from here. It does not
// keep its gate shut.
type Unproven struct{ Seen string }

func (e *Unproven) Error() string { return "unproven: " + e.Seen }

// errStopped ends the waits beside one that turned out to be impossible.
var errStopped = errors.New("no longer waited for: another condition of the gate cannot be met")

func (e *Timeout) Error() string {
	seen := e.Seen
	if seen == "" {
		seen = "nothing seen yet"
	}
	return fmt.Sprintf("waiting for %s: %s, %s%s", e.Condition, seen, spoken(e.Elapsed), e.lookAt())
}

func (e *Impossible) Error() string {
	return fmt.Sprintf("waiting for %s is in vain after %s: %v%s", e.Condition, spoken(e.Elapsed), e.Cause, e.lookAt())
}

func (e *Impossible) Unwrap() error { return e.Cause }

func (f Failure) lookAt() string {
	if f.Next == "" {
		return ""
	}
	return "; look at: " + f.Next
}

// spoken rounds a duration to what a person cares about.
func spoken(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// shorten puts a message into one line of at most seenLimit bytes.
func shorten(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > seenLimit {
		message = strings.ToValidUTF8(message[:seenLimit-3], "") + "..."
	}
	return message
}
