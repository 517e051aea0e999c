package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/report"
)

// waitFlags are those of a command that changes the manifest and can wait for what becomes of it.
type waitFlags struct {
	deliveryFlags
	wait bool
}

func (w *waitFlags) add(command *cobra.Command) {
	command.Flags().BoolVar(&w.wait, "wait", false, "wait until the cluster runs what the manifest names then")
	w.deliveryFlags.add(command)
}

// waiter gets access to the cluster before anything is changed, so that what could not be waited for is not done
// either. Without --wait it is nil. An error says what is not done, such as "published".
func (w *waitFlags) waiter(cmd *cobra.Command, update gitops.UpdateRequest, done string) (report.Waiter, error) {
	if !w.wait {
		return nil, nil
	}
	if update.DryRun || update.PushBranch != "" {
		return nil, errors.New("--wait waits for what Flux rolls out: it goes neither with --dry-run nor with --push-branch")
	}
	waiter, err := w.open(cmd)
	if err != nil {
		return nil, fmt.Errorf("nothing is %s yet, since its rollout could not be waited for: %w", done, err)
	}
	return waiter, nil
}

// printRun prints what a run did, also where only its rollout was not seen; that is an error nevertheless.
func printRun(cmd *cobra.Command, format *cli.Format, result report.Result, err error) error {
	if _, unseen := errors.AsType[*report.UnseenError](err); err != nil && !unseen {
		return err
	}
	return errors.Join(format.Print(cmd, result), err)
}
