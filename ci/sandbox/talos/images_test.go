package talos

import (
	"context"
	"errors"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
)

const image = "quay.io/metallb/speaker:v0.15.2"

// pull asks a machine for an image by the call that Talos 1.12 and 1.13 have both.
func pull(ctx context.Context, c *client.Client, namespace common.ContainerdNamespace) error {
	//lint:ignore SA1019 its successor is not in 1.12
	return c.ImagePull(ctx, namespace, image)
}

func TestAMachinePullsForAnAdministratorOnceItsContainerRuntimeRuns(t *testing.T) {
	y := newYard(t, 0)
	ctx := context.Background()
	y.on(1)
	y.stage(1, stageMaintenance)
	if err := pull(ctx, y.at(1, nil), common.ContainerdNamespace_NS_CRI); client.StatusCode(err) != codes.PermissionDenied {
		t.Errorf("in maintenance mode: %v", err)
	}
	y.apply(1, machinetype.TypeControlPlane)
	y.stage(1, stageRunning)
	y.runtime(1, false)
	if err := pull(ctx, y.at(1, y.admin), common.ContainerdNamespace_NS_CRI); client.StatusCode(err) != codes.Unavailable {
		t.Errorf("without a container runtime: %v", err)
	}
	y.runtime(1, true)
	if err := pull(ctx, y.at(1, y.credentials(role.Reader)), common.ContainerdNamespace_NS_CRI); client.StatusCode(err) != codes.PermissionDenied {
		t.Errorf("for a reader: %v", err)
	}
	if err := pull(ctx, y.at(1, y.admin), common.ContainerdNamespace_NS_SYSTEM); client.StatusCode(err) != codes.InvalidArgument {
		t.Errorf("for Talos itself: %v", err)
	}
	if seen := y.last("pull " + image); seen != "" {
		t.Errorf("a refused call had an effect: %s", seen)
	}
	if err := pull(ctx, y.at(1, y.admin), common.ContainerdNamespace_NS_CRI); err != nil {
		t.Error(err)
	}
	if seen := y.last("pull "); seen != "pull "+image+" on node-1" {
		t.Errorf("pulled: %q", seen)
	}
}

// runtime says whether a machine's container runtime runs.
func (y *yard) runtime(i int, runs bool) {
	y.fleet.change(func() { y.fleet.machines[i].ready = runs })
}

func TestAPullEndsWithoutAnImageWhenItsCallerLeavesOrThePowerDoes(t *testing.T) {
	y := newYard(t, 0)
	y.cluster(1)
	begun, ended := make(chan struct{}), make(chan error)
	y.mu.Lock()
	y.pulls = func(ctx context.Context, pulled string) error {
		if pulled != image {
			return nil // its own, when it starts again
		}
		begun <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	y.mu.Unlock()
	for name, end := range map[string]func(leave func()){
		"the caller": func(leave func()) { leave() },
		"the power":  func(func()) { _ = y.fleet.PowerOff(1) },
	} {
		ctx, leave := context.WithCancel(context.Background())
		machine, told := y.at(1, y.admin), make(chan error)
		go func() { told <- pull(ctx, machine, common.ContainerdNamespace_NS_CRI) }()
		<-begun
		end(leave)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("without %s it ends with %v", name, err)
		}
		if err := <-told; err == nil {
			t.Errorf("without %s the image is there", name)
		}
		leave()
		y.on(1)
		y.stage(1, stageRunning)
	}
}
