package talos

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc/codes"
)

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
