package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/environment"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/layers/terragrunt"
)

// Way leads the tools to the API, by the variables that they read; nil where they ask it nothing.
type Way map[string]string

// Log takes what the tools print, as terragrunt.Runner has it.
type Log func(unit, message string)

// Units runs OpenTofu in the layers' units, by Terragrunt.
type Units struct {
	cluster *Cluster
	access  *Access
	given   *given
	runner  terragrunt.Runner
}

// Units opens them; events is the file of the event log.
func (c *Cluster) Units(access *Access, way Way, events string, log Log) (*Units, error) {
	given, err := c.given(access, events, way)
	if err != nil {
		return nil, err
	}
	downloads, err := os.MkdirTemp("", "castle-units-")
	if err != nil {
		return nil, err
	}
	return &Units{cluster: c, access: access, given: given, runner: terragrunt.Runner{
		Binary: c.Tools.Terragrunt, Tofu: c.Tools.Tofu, Dir: c.units(), Env: given.everybodys(), Downloads: downloads, Log: log,
	}}, nil
}

// Close removes what the tools needed.
func (u *Units) Close() error { return os.RemoveAll(u.runner.Downloads) }

// Prepare does what goes before an OpenTofu command in the folder that it is about to run in, whose providers are installed by then.
type Prepare func(ctx context.Context, folder string) error

// Plan is a command "plan" in a layer, for one node alone where node is not nil. Account is a folder that takes OpenTofu's own account of it,
// LAYER.json, a line for each thing that would change; whole a file that takes the plan with all of its values, as JSON. Both may be empty.
type Plan struct {
	Node           *OneNode
	Account, Whole string
}

// variableAccounts tells root.hcl where the accounts of plans go.
const variableAccounts = "CASTLE_PLANS"

// Plan plans a layer. What is there and in no state is imported by it, as an apply would.
func (u *Units) Plan(ctx context.Context, layer layers.Layer, plan Plan) error {
	one := *u
	one.runner.Plan = plan.Whole
	if plan.Account != "" {
		one.runner.Env = append(slices.Clip(u.runner.Env), variableAccounts+"="+plan.Account)
	}
	prepare := func(ctx context.Context, folder string) error {
		if layer.Name != layers.Platform { // the API may not be there yet
			return nil
		}
		there, err := u.cluster.adoption(ctx, u.access, layer.Name)
		return errors.Join(err, adopt(folder, there))
	}
	return one.run(ctx, layer, prepare, append([]string{"plan"}, u.cluster.only(plan.Node)...)...)
}

// run runs a command in a layer's unit.
func (u *Units) run(ctx context.Context, layer layers.Layer, prepare Prepare, command ...string) error {
	if command[0] != "plan" && u.cluster.Description.State.Backend == config.StateS3 {
		command = append(slices.Clip(command), "-lock=false") // the run holds OpenTofu's locks itself: layers/state/locks.go
	}
	var mutex sync.Mutex
	var unprepared error
	folder := ""
	runner := u.runner
	runner.Secrets = func(request environment.Request) ([]string, error) {
		if request.Layer != layer.Name {
			return nil, fmt.Errorf("it runs for layer %s", layer.Name)
		}
		if request.Command == command[0] {
			err := prepare(ctx, request.Folder)
			mutex.Lock()
			defer mutex.Unlock()
			folder = request.Folder
			if unprepared = err; err != nil {
				return nil, errors.New("what goes before its command failed")
			}
		}
		return u.given.secrets(layer.Name)
	}
	err := runner.Run(ctx, layer.Folder, command...)
	mutex.Lock()
	defer mutex.Unlock()
	if err != nil && folder != "" {
		// A state that OpenTofu could not write where it belongs is kept for the next run.
		err = errors.Join(err, state.Rescue(filepath.Join(folder, state.ErroredFile), u.cluster.State, layer.Name))
	}
	switch {
	case unprepared != nil:
		return &ownError{unprepared}
	case err == nil && folder == "":
		return layers.ErrExcluded // Terragrunt did not run OpenTofu
	}
	return err
}

// ownError is an error of castle's own, and not of a tool that it runs.
type ownError struct{ error }

func (e *ownError) Unwrap() error { return e.error }
