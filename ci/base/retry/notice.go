package retry

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"tazlab.net/castle/ci/base/tracing"
)

// Notice is one failure after which there is another attempt.
type Notice struct {
	Doing    string // "push to branch main"
	Attempts int    // so far
	Most     uint   // attempts, where their number ends it and no time does
	Seen     string // what failed, without secrets
	Pause    time.Duration
	Until    time.Time // no attempt begins after it, where it is not zero
}

func (n Notice) String() string {
	end := fmt.Sprintf("after attempt %d", n.Most)
	if !n.Until.IsZero() {
		end = fmt.Sprintf("at %s (in %s)", n.Until.UTC().Format("15:04:05 UTC"), time.Until(n.Until).Round(time.Second))
	}
	return fmt.Sprintf("%s failed at attempt %d: %s; trying again in %s, giving up %s", n.Doing, n.Attempts, line(n.Seen),
		n.Pause.Round(10*time.Millisecond), end)
}

// line is a text as one line: a tool may have said a page.
func line(text string) string {
	const most = 300
	if text = strings.Join(strings.Fields(text), " "); len(text) > most {
		return "… " + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return text
}

type key struct{}

// To has notices written to a writer, a line each. Without one they are only in the trace.
func To(ctx context.Context, to io.Writer) context.Context { return context.WithValue(ctx, key{}, to) }

// Say reports a failure, before the pause.
func Say(ctx context.Context, n Notice) {
	text := n.String()
	if to, ok := ctx.Value(key{}).(io.Writer); ok {
		fmt.Fprintln(to, text)
	}
	_, span := tracing.Begin(ctx, text, tracing.Reveal())
	time.AfterFunc(n.Pause, func() { tracing.End(span, nil) })
}
