package talos_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tazlab.net/castle/ci/cluster/talos"
)

const speaker = "quay.io/metallb/speaker:v0.15.2"

func TestANodePullsAnImageForItsPods(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	access := w.dial()
	for _, node := range []string{"sandbox-cp-2", "sandbox-worker-1"} {
		if err := access.Pull(context.Background(), node, speaker); err != nil {
			t.Error(err)
		}
		if got := w.images(node); !slices.Equal(got, []string{speaker}) {
			t.Errorf("%s has %q", node, got)
		}
	}
	if got := w.images("sandbox-worker-2"); len(got) != 0 {
		t.Errorf("a node that nobody asked has %q", got)
	}
	if err := access.Pull(context.Background(), "elsewhere", speaker); err == nil || !strings.Contains(err.Error(), "no node elsewhere") {
		t.Errorf("of a node that is not declared: %v", err)
	}
}

func TestANodeThatStartsIsAskedUntilItPulls(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	access := w.dial()
	node := w.cluster.Nodes[4]
	if err := w.fleet.PowerOff(node.VMID); err != nil {
		t.Fatal(err)
	}
	short, leave := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer leave()
	if err := access.Pull(short, node.Name, speaker); !errors.Is(err, context.DeadlineExceeded) && client.StatusCode(err) != codes.DeadlineExceeded {
		t.Errorf("it was given up: %v", err)
	}
	done := make(chan error)
	go func() { done <- access.Pull(context.Background(), node.Name, speaker) }()
	if err := w.fleet.PowerOn(w.vm(node)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := w.images(node.Name); !slices.Equal(got, []string{speaker}) {
		t.Errorf("it has %q", got)
	}
}

func TestAnImageThatIsNotToBeHadIsToldAtOnce(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	w.pull(func(context.Context, string) error {
		return status.Error(codes.NotFound, "error pulling image: not found")
	})
	err := w.dial().Pull(context.Background(), "sandbox-cp-1", speaker)
	if client.StatusCode(err) != codes.NotFound || !strings.Contains(err.Error(), "sandbox-cp-1 does not pull "+speaker) {
		t.Errorf("%v", err)
	}
}

func TestAPullEndsWithItsCaller(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	ctx, leave := context.WithCancel(context.Background())
	given := make(chan error, 1)
	w.pull(func(pull context.Context, image string) error {
		if image != speaker {
			return nil
		}
		leave()
		<-pull.Done()
		given <- pull.Err()
		return pull.Err()
	})
	if err := w.dial().Pull(ctx, "sandbox-worker-1", speaker); err == nil {
		t.Error("it is said to have ended well")
	}
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("the machine ended it with %v", err)
	}
	if got := w.images("sandbox-worker-1"); len(got) != 0 {
		t.Errorf("the node has %q", got)
	}
}

func TestTheFirstEtcdIsAwaitedUntilItsImageIsThere(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	comes := make(chan struct{})
	w.pull(func(ctx context.Context, image string) error {
		if !strings.Contains(image, "etcd") {
			return nil
		}
		select {
		case <-comes:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	w.powerOn()
	up := make(chan error, 1)
	go func() { _, err := talos.Up(t.Context(), w.cluster, w.bundle, w.options()); up <- err }()
	access := w.dial()
	short, leave := context.WithTimeout(t.Context(), 2*time.Second)
	defer leave()
	if err := access.AwaitEtcd(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without its image: %v", err)
	}
	close(comes)
	if err := access.AwaitEtcd(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-up; err != nil {
		t.Error(err)
	}
}
