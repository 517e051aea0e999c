package talos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc/codes"
)

// candidate is the control plane to bootstrap, -1 where none may be. It is proven that no control plane holds an etcd: each
// either was made or in maintenance mode in this run, or says that its etcd is not running and that its data directory is empty. A
// second bootstrap would make a second cluster. The first in the description's order that is ready is taken; from then on no
// other one is, and it is called again where its call may have been without effect, which underWay asks Talos.
func (f *bootstrapper) candidate(views []view) int {
	for i, v := range views {
		if len(v.members) > 0 || v.data == dataFull || v.state == running {
			return -1
		}
		if !f.newborn(f.nodes[i]) && !v.blank() {
			return -1
		}
	}
	if f.phase == bootstrapNone {
		return slices.IndexFunc(views, view.blank)
	}
	v, since := views[f.chosen], time.Since(f.since)
	again := false
	switch f.phase {
	case bootstrapCalled:
		again = since > f.options.NoopGrace
	case bootstrapUnanswered:
		again = true
	case bootstrapUnderWay: // something has happened since; or etcd has ended, and not only just been stopped for the bootstrap
		again = v.revision != f.revision || v.ended() && since >= f.options.NoopGrace
	}
	if again && v.blank() {
		return f.chosen
	}
	return -1
}

// blank tells that a control plane's etcd can be bootstrapped: it says itself that it has none.
func (v view) blank() bool { return v.err == nil && v.data == dataEmpty && v.state != running }

// ended tells that etcd does not run and nothing starts it: it failed, or was stopped by a bootstrap whose caller left.
func (v view) ended() bool {
	return v.state == "Failed" || v.state == "Finished" || v.state == "Skipped"
}

// underWay tells whether a control plane says that it has been bootstrapped: by an earlier run, which ended before it saw the effect,
// or by this one, which may have lost the answer. Its data directory stays empty until it has etcd's image; it must not be disturbed,
// and no other one be bootstrapped. A machine that was made or in maintenance mode in this run, and was not called, cannot be one. What is not
// known now counts as so, and is asked again.
func (f *bootstrapper) underWay(ctx context.Context, views []view) bool {
	called := f.phase != bootstrapNone
	for i, n := range f.nodes {
		if called && i != f.chosen || !called && f.newborn(n) {
			continue
		}
		requested, whole, err := n.logged(ctx, requestedText)
		requested = requested || !whole && views[i].restarted // the note may have been pushed out of the log
		switch {
		case err != nil:
			f.chosen = i
			return true
		case requested && f.phase == bootstrapUnderWay && f.revision == views[i].revision: // it began, and etcd has ended since without any data
			return false
		case requested:
			f.chosen, f.revision = i, views[i].revision
			f.enter(bootstrapUnderWay)
			return true
		}
	}
	return false
}

// bootstrap calls a control plane once. What can pass is told as no error: the next look decides.
func (f *bootstrapper) bootstrap(ctx context.Context, at int) error {
	n := f.nodes[at]
	s := f.begin(StepBootstrap, n.Name)
	call, cancel := context.WithTimeout(ctx, f.options.BootstrapTimeout)
	defer cancel()
	err := n.client.Bootstrap(call, &machine.BootstrapRequest{})
	f.refusal = ""
	if err != nil {
		f.refusal = unwrapped(err)
	}
	code := client.StatusCode(err)
	if cut(err) {
		code = codes.DeadlineExceeded
	}
	switch code {
	case codes.OK:
		f.reached(at, bootstrapCalled)
		if f.accepted.IsZero() {
			f.accepted = f.since
		}
		f.mu.Lock()
		f.bootstraps++
		f.mu.Unlock()
		return s.end(ResultOK, nil)
	case codes.FailedPrecondition, // the container runtime does not run yet, or the clock is not in step yet
		codes.Unimplemented,    // the machine does not know yet that it is a control plane; so does maintenance mode before 1.13 answer
		codes.PermissionDenied: // maintenance mode of 1.13 lets everybody read, and nobody bootstrap
		s.waiting(f.refusal)
		return nil
	case codes.DeadlineExceeded, // the answer is lost: Talos has begun, or stopped etcd and left it so, or neither
		codes.Canceled,    // the same, by a restart of the API
		codes.Unavailable: // the same, or nobody was there
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.reached(at, bootstrapUnanswered)
		s.waiting(f.refusal)
		return nil
	case codes.AlreadyExists: // its data directory is not empty: another call was first, or a ghost; the next looks tell
		f.reached(at, bootstrapCalled)
		s.waiting(f.refusal)
		return nil
	default:
		return s.end("", fmt.Errorf("bootstrap etcd on %s: %w", n.Name, err))
	}
}

// reached notes whom a call has reached, or may have.
func (f *bootstrapper) reached(at int, phase bootstrapPhase) {
	f.chosen, f.called = at, true
	f.enter(phase)
}

// requestedText is what Talos notes when it has stopped etcd in order to bootstrap it. The service's own history begins anew then.
const requestedText = "service[etcd](Finished): Bootstrap requested"

// wholeLog is a length below which a log of Talos has forgotten nothing. Each call to a machine is noted in it, so that a run which looks
// often fills it in two minutes; then the oldest 64 KiB of the 1 MiB go at a time (circular.go in internal/app/machined/pkg/runtime/logging
// of Talos 1.13).
const wholeLog = 900 << 10

// logged tells whether a machine's log has a text, and whether the log is whole since the machine started.
func (n *node) logged(ctx context.Context, text string) (found, whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream, err := n.client.Logs(ctx, constants.SystemContainerdNamespace, common.ContainerDriver_CONTAINERD, "machined", false, -1)
	if err != nil {
		return false, false, err
	}
	var log strings.Builder
	for {
		part, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return strings.Contains(log.String(), text), log.Len() < wholeLog, nil
		case err != nil:
			return false, false, err
		case part.GetMetadata().GetError() != "":
			return false, false, errors.New(part.GetMetadata().GetError())
		}
		log.Write(part.GetBytes())
	}
}
