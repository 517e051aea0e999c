package talos

import (
	"context"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// GiveBackLimit is how long a machine may take to wipe its partitions and to come back in maintenance mode: a server checks its memory for
// minutes.
const GiveBackLimit = 15 * time.Minute

// resetLimit is for how long a machine is asked to reset itself that gives no answer and stays as it is.
const resetLimit = 30 * time.Second

// held are the partitions with what a machine has of a cluster: its configuration, and all that runs on it. Talos itself stays on its disk.
var held = []string{constants.StatePartitionLabel, constants.EphemeralPartitionLabel}

// GiveBack has a machine that castle did not make wipe what it holds of the cluster, and restart, which brings it into maintenance mode. A
// control plane that leaves a cluster which goes on does so gracefully. It has only begun with that when GiveBack returns. Only a machine of
// the cluster's own PKI takes the call.
func (a *Access) GiveBack(ctx context.Context, node string, graceful bool) error {
	n, err := a.named(node)
	if err != nil {
		return err
	}
	request := &machine.ResetRequest{Graceful: graceful, Reboot: true, Mode: machine.ResetRequest_SYSTEM_DISK}
	for _, label := range held {
		request.SystemPartitionsToWipe = append(request.SystemPartitionsToWipe, &machine.ResetPartitionSpec{Label: label, Wipe: true})
	}
	for end := time.Now().Add(resetLimit); ; {
		err := n.reset(ctx, request)
		switch {
		case err == nil:
			return nil
		case !passing(err) || time.Now().After(end):
			return fmt.Errorf("%s does not reset itself: %w", node, err)
		}
		// The answer may be what was lost. Where the machine has its configuration still, it is told once more, which does no harm to a reset that goes on.
		switch n.status(ctx).State {
		case IsConfigured:
		case IsGhost:
			return fmt.Errorf("%s does not reset itself: %w", node, err)
		default:
			return nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

func (n *node) reset(ctx context.Context, request *machine.ResetRequest) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return n.client.ResetGeneric(ctx, request)
}

// StatusOf looks at one node once.
func (a *Access) StatusOf(ctx context.Context, node string) (NodeStatus, error) {
	n, err := a.named(node)
	if err != nil {
		return NodeStatus{}, err
	}
	return n.status(ctx), nil
}

// AwaitMaintenance waits until a machine answers in maintenance mode. tell is told what it is seen to be until then.
func (a *Access) AwaitMaintenance(ctx context.Context, node string, limit time.Duration, tell func(string)) error {
	n, err := a.named(node)
	if err != nil {
		return err
	}
	for end := time.Now().Add(limit); ; {
		seen := n.status(ctx)
		if seen.State == InMaintenance {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s (%s) was told to reset itself, or should have been, and is not in maintenance mode after %s: %s; look at its console", node, n.Address, limit, seen.what())
		}
		tell(brief(seen.what()))
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// what says what a machine was seen to be.
func (s NodeStatus) what() string {
	if s.State == IsConfigured {
		return "it has its configuration still"
	}
	return s.Problem
}

// Reboot restarts a machine.
func (a *Access) Reboot(ctx context.Context, node string) error {
	n, err := a.named(node)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := n.client.Reboot(ctx); err != nil {
		return fmt.Errorf("%s does not restart: %w", node, err)
	}
	return nil
}
