//go:build linux

package world

import (
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"time"
)

// upWithin is the time that a world has to come up in: some seconds are usual, and machines boot in its own time.
const upWithin = 5 * time.Minute

// endUnlessUp ends the process, with what each of its goroutines waits for, where the world is not up in time. Whoever called it would
// otherwise wait for its proxy for as long as it pleases the engine. The world's state is that of a power cut then.
func (w *world) endUnlessUp() (up func()) {
	return endAfter(max(upWithin, w.Profile.Scaled(upWithin)), w.Log, os.Exit)
}

func endAfter(limit time.Duration, log io.Writer, exit func(int)) (cancel func()) {
	timer := time.AfterFunc(limit, func() {
		fmt.Fprintf(log, "castle-sandbox: the world did not come up within %s; what it was doing:\n", limit)
		_ = pprof.Lookup("goroutine").WriteTo(log, 2)
		exit(1)
	})
	return func() { timer.Stop() }
}
