package talos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc/codes"
)

// bring takes one node to its configuration, as soon as its machine is there.
func (r *run) bring(ctx context.Context, n *node) error {
	if r.options.Made != nil {
		if err := r.options.Made(ctx, n.Name); err != nil {
			return err
		}
		r.note(n, func(p *progress) { p.made = true })
	}
	s := r.begin(StepMachine, n.Name)
	result, err := r.configure(ctx, n, s)
	if err != nil {
		r.note(n, func(p *progress) { p.judged = true })
		return s.end("", err)
	}
	r.note(n, func(p *progress) { p.result, p.took = result, time.Since(r.started) })
	if result == UnchangedNode {
		return s.end(ResultUnchanged, nil)
	}
	return s.end(ResultOK, nil)
}

func (r *run) configure(ctx context.Context, n *node, s *step) (string, error) {
	var (
		began    = time.Now()
		applied  time.Time // last time that the configuration was accepted in maintenance mode
		away     bool      // it has been silent since
		foreigns int
		strange  time.Time // the first of them
		quiet    = quiet{run: r, node: n, since: began}
		last     = "nothing yet"
	)
	if n.Fingerprint != "" {
		n.pin.want(n.Fingerprint, false)
	}
	for {
		what, seen := n.look(ctx)
		if what != silent {
			quiet.since = time.Now()
		}
		if what == configured || what == maintenance {
			foreigns = 0
			r.note(n, func(p *progress) { p.judged = true })
		}
		switch what {
		case configured:
			r.note(n, func(p *progress) {
				if p.configured.IsZero() {
					p.configured = time.Now()
				}
			})
			if !applied.IsZero() {
				return Configured, nil
			}
			result, err := n.update(ctx, r.configs[n.Name])
			if err == nil && r.seen(n).fresh {
				return Configured, nil // it took the configuration, and the answer to that was lost
			}
			if err == nil || !passing(err) && !between(err) {
				return result, err
			}
			last = unwrapped(err)
		case maintenance:
			r.note(n, func(p *progress) { p.fresh = true })
			if err := r.fitting(ctx, n); err != nil {
				if !passing(err) && !between(err) {
					return "", err
				}
				last = unwrapped(err)
				break
			}
			last = "in maintenance mode"
			if away || time.Since(applied) > reapply { // never applied, or it fell back, such as by a power cut while it installed
				err := n.apply(ctx, r.configs[n.Name])
				switch {
				case err == nil:
					applied, away = time.Now(), false
				case between(err):
					last += ": " + unwrapped(err)
				case !passing(err):
					return "", err
				}
			}
			if !applied.IsZero() {
				last = "installing"
			}
		case foreign:
			last = seen.Error()
			// For a moment of its restart a machine can look like this, and until a connection is tried anew, what it looked like is what
			// each call gets; a ghost does so every time.
			if foreigns == 0 {
				strange = time.Now()
			}
			if foreigns++; foreigns >= foreignLooks && time.Since(strange) > foreignFor {
				return "", &GhostError{Node: n.Name, Address: n.Address, Seen: last}
			}
		case stranger:
			last = "its certificate is another one"
			shown, wanted, learned, _ := n.pin.other()
			if learned { // it has restarted, or gone over to its configuration
				n.pin.want("", false)
				r.note(n, func(p *progress) { p.fits = false })
				break
			}
			// A machine that goes over to its configuration shows that one's certificate for a moment.
			if foreigns == 0 {
				strange = time.Now()
			}
			if foreigns++; foreigns >= foreignLooks && time.Since(strange) > foreignFor {
				return "", &FingerprintError{Node: n.Name, Address: n.Address, Shown: shown, Wanted: wanted}
			}
		case silent:
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			away = true
			last = unwrapped(seen)
			if err := quiet.look(); err != nil {
				return "", err
			}
		}
		s.waiting(brief(last))
		if time.Since(began) > r.options.NodeDeadline {
			return "", &SilentError{Node: n.Name, Address: n.Address, Waited: r.options.NodeDeadline.String(), Seen: last}
		}
		if err := pause(ctx, r.options.Poll); err != nil {
			return "", err
		}
	}
}

// fitting looks once whether a machine is the one that is meant, and its template the one that is described, before
// anything is applied to it.
func (r *run) fitting(ctx context.Context, n *node) error {
	if r.seen(n).fits {
		return nil
	}
	if err := r.identify(ctx, n); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := n.fits(ctx, r.cluster); err != nil {
		return err
	}
	r.note(n, func(p *progress) { p.fits = true })
	return nil
}

// apply gives a machine in maintenance mode its configuration; it installs and restarts then by itself.
func (n *node) apply(ctx context.Context, config []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := n.insecure.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{
		Data: config, Mode: machine.ApplyConfigurationRequest_AUTO,
	})
	if err != nil {
		return fmt.Errorf("%s does not take its configuration: %w", n.Name, err)
	}
	return nil
}

// noChanges is what a dry run says of a configuration that the machine has already.
const noChanges = "No changes."

// update gives a configured machine its configuration where it differs, without a restart.
func (n *node) update(ctx context.Context, config []byte) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	same, restart, err := n.compare(ctx, config)
	switch {
	case err != nil:
		return "", err
	case same:
		return UnchangedNode, nil
	case restart:
		return "", fmt.Errorf("the configuration of %s differs in something that only a restart changes: create again, which restarts one node after the other while the cluster is well, or apply it with talosctl apply-config --mode=reboot", n.Name)
	}
	return Reconfigured, n.give(ctx, config, machine.ApplyConfigurationRequest_NO_REBOOT)
}

// compare has a machine compare its configuration with another one, by a dry run, and say whether that would restart it. Its text holds
// secrets where something differs and is not handed on. The error is a *LastingError where that must not differ.
func (n *node) compare(ctx context.Context, config []byte) (same, restart bool, err error) {
	request := &machine.ApplyConfigurationRequest{Data: config, Mode: machine.ApplyConfigurationRequest_AUTO, DryRun: true}
	response, err := n.client.ApplyConfiguration(ctx, request)
	if err != nil {
		return false, false, fmt.Errorf("%s does not compare its configuration: %w", n.Name, err)
	}
	same = len(response.GetMessages()) > 0
	for _, message := range response.GetMessages() {
		same = same && strings.Contains(message.GetModeDetails(), noChanges)
		restart = restart || message.GetMode() == machine.ApplyConfigurationRequest_REBOOT
	}
	if !same {
		err = n.lasting(ctx, config)
	}
	return same, restart, err
}

// give gives a configured machine another configuration.
func (n *node) give(ctx context.Context, config []byte, mode machine.ApplyConfigurationRequest_Mode) error {
	_, err := n.client.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: config, Mode: mode})
	switch {
	case err == nil:
		return nil
	case client.StatusCode(err) == codes.InvalidArgument && mode == machine.ApplyConfigurationRequest_NO_REBOOT:
		return fmt.Errorf("%s refuses its configuration without a restart: apply it with talosctl apply-config --mode=reboot", n.Name)
	default:
		return fmt.Errorf("%s does not take its configuration: %w", n.Name, err)
	}
}

// passing tells that a call may succeed a moment later.
func passing(err error) bool {
	switch client.StatusCode(err) {
	case codes.Unavailable, // the API restarts with other certificates when a machine leaves maintenance mode
		codes.Canceled,         // the same, seen by a call under way
		codes.DeadlineExceeded, // the machine went down with the call
		codes.Aborted:          // another change of its state was first
		return true
	default:
		return errors.Is(err, context.DeadlineExceeded) || cut(err)
	}
}

// between tells the same of a machine that goes over to a configuration, be it one whose answer was lost or of an earlier run: one more is not possible
// while that is applied or the machine restarts for it, and not permitted to whom maintenance mode had let in (ApplyConfiguration in
// internal/app/machined/internal/server/v1alpha1/v1alpha1_server.go of Talos v1.13.9).
func between(err error) bool {
	code := client.StatusCode(err)
	return code == codes.PermissionDenied || code == codes.FailedPrecondition
}

// cut tells that the time of a call was over before Talos had done what it was asked for: its handlers then answer with what they
// were at and the error of the call's context, without a code of its own, and that answer can come before the caller's own end.
func cut(err error) bool {
	if client.StatusCode(err) != codes.Unknown {
		return false
	}
	text := err.Error()
	return strings.Contains(text, context.DeadlineExceeded.Error()) || strings.Contains(text, context.Canceled.Error())
}

// quiet finds out about a node that does not answer.
type quiet struct {
	run      *run
	node     *node
	since    time.Time
	searched bool
}

// look gives an error where the node's machine is somewhere else. Proxmox cannot tell: it would have to ask an agent in the
// machine, and Talos has none by itself.
func (q *quiet) look() error {
	if time.Since(q.since) > q.run.options.Silence && !q.searched {
		q.searched = true
		if live := q.run.search(); len(live) > 0 {
			return &DriftError{Node: q.node.Name, Declared: q.node.Address, Live: live}
		}
	}
	return nil
}

// brief keeps the part of an error that differs from one look to the next out of the events.
func brief(text string) string {
	for _, known := range []string{"connection refused", "no route to host", "i/o timeout", "certificate signed by unknown authority", "connection reset", "Bad Gateway"} {
		if strings.Contains(text, known) {
			return known
		}
	}
	return text
}
