package run

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/timeline"
)

// hook is one whose event log is a file of the test's.
func hook(t *testing.T) *Hook {
	t.Helper()
	events := filepath.Join(t.TempDir(), eventsFile)
	log, err := timeline.Open(events)
	if err != nil {
		t.Fatal(err)
	}
	h := &Hook{description: &config.Cluster{Name: "blue"}, events: events, notes: notes{cluster: "blue", log: log}}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func (h *Hook) ended(layer, result string) {
	h.append(timeline.Event{Kind: timeline.KindLayer, Layer: layer, Phase: timeline.PhaseEnd, Result: result})
}

func TestAWaitEndsWhenTheLayerFailsThatItWaitsFor(t *testing.T) {
	t.Parallel()
	h := hook(t)
	ctx, stop := h.whileAwaited(t.Context(), layers.GitOps)
	defer stop()
	h.ended(layers.Engine, timeline.ResultFailed)
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("gitops still waits for an engine that has failed")
	}
	if cause := context.Cause(ctx).Error(); !strings.Contains(cause, "layer engine failed") {
		t.Errorf("the cause is %q", cause)
	}
}

func TestAWaitGoesOnWhenAnotherLayerFailsOrTheAwaitedOneEnds(t *testing.T) {
	t.Parallel()
	h := hook(t)
	ctx, stop := h.whileAwaited(t.Context(), layers.GitOps)
	defer stop()
	h.ended(layers.Storage, timeline.ResultFailed)
	h.ended(layers.Engine, timeline.ResultOK)
	// The failure after them has an effect, so that those before it were read and had none.
	h.ended(layers.Engine, timeline.ResultFailed)
	<-ctx.Done()
	if cause := context.Cause(ctx).Error(); !strings.Contains(cause, layers.Engine) {
		t.Errorf("the wait was ended by %q", cause)
	}
}
