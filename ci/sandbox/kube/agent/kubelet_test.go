//go:build linux

package agent

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWhatNeedsTheKubeletWaitsWhileItIsAway(t *testing.T) {
	var k kubelet
	if err := k.runs(t.Context()); err != nil || k.isAway() {
		t.Fatalf("at first it is away (%t), %v", k.isAway(), err)
	}
	call, cancel := k.call(t.Context())
	defer cancel()
	start := k.stop()
	<-call.Done() // what it has asked containerd for ends with it
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := k.runs(ctx); !errors.Is(err, context.DeadlineExceeded) || !k.isAway() {
		t.Errorf("it was stopped, and runs: %v", err)
	}
	waited := make(chan error)
	go func() { waited <- k.runs(t.Context()) }()
	start()
	if err := <-waited; err != nil || k.isAway() {
		t.Errorf("it was started, and is away (%t), %v", k.isAway(), err)
	}
}
