package main

import (
	"encoding/json"
	"fmt"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/report"
)

// resultFlags are those of a command whose result a person reads, and castle-cluster where the rollout is waited for.
type resultFlags struct {
	format cli.Format
	file   string
}

func (r *resultFlags) add(command *cobra.Command) {
	command.Flags().StringVar(&r.file, "result", "", "a file to write the result to as well, for castle-cluster rollout, which may be waiting for it")
	r.format.Add(command)
	r.format.AddFile(command)
}

func (r *resultFlags) print(cmd *cobra.Command, result report.Result) error {
	if r.file != "" {
		data, err := json.Marshal(result)
		if err != nil {
			return err
		}
		// Who waits for the file reads it as soon as it is there.
		if err := renameio.WriteFile(r.file, data, 0o644); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return r.format.Print(cmd, result)
}
