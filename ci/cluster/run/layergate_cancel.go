package run

import (
	"context"
	"fmt"
	"slices"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/timeline"
)

// whileAwaited ends the context when a layer fails whose objects the given one waits for: they would never come. The cause
// names it. stop gives up what it holds.
func (h *Hook) whileAwaited(ctx context.Context, layer string) (_ context.Context, stop func()) {
	awaited := layers.Named(layer).Awaits
	ctx, cancel := context.WithCancelCause(ctx)
	if len(awaited) == 0 {
		return ctx, func() { cancel(nil) }
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		reader := timeline.NewReader(h.events)
		defer func() { _ = reader.Close() }()
		for {
			// A log that cannot be read is no reason to end a wait; it has its own deadline.
			event, err := reader.Next(ctx)
			if err != nil {
				return
			}
			if failed(event) && slices.Contains(awaited, event.Layer) {
				cancel(fmt.Errorf("layer %s failed, which %s waits for", event.Layer, layer))
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// failed tells of a layer that has ended in an error.
func failed(event timeline.Event) bool {
	return event.Kind == timeline.KindLayer && event.Phase == timeline.PhaseEnd && event.Result == timeline.ResultFailed
}
