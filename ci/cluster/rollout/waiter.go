package rollout

import (
	"context"
	"io"
	"sync"
	"time"

	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Waiter waits for rollouts on one cluster, and tells of each step in a line and a span. It changes nothing but to ask Flux
// to look now.
type Waiter struct {
	Client *kube.Client
	Out    io.Writer // step lines
}

// Wait is the function Wait on the waiter's cluster.
func (w Waiter) Wait(ctx context.Context, wanted Wanted, timeout time.Duration) (Seen, error) {
	steps, spans := timeline.NewSteps(w.Out), timeline.NewSpans(ctx)
	var mutex sync.Mutex
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-ticker.C:
				mutex.Lock()
				steps.Tick(now)
				mutex.Unlock()
			}
		}
	})
	seen, err := Wait(ctx, w.Client, wanted, gates.Options{Timeout: timeout, Events: func(event gates.Event) {
		if event.Condition == "" {
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		spans.Show(event.Record(""))
		if event.Err == nil { // an error comes back, and is told by who asked
			steps.Show(event.Record(gate))
		}
	}})
	close(done)
	ticking.Wait()
	spans.Close(time.Now())
	return seen, err
}
