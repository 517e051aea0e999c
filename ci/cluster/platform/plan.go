package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	tfjson "github.com/hashicorp/terraform-json"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
)

// Foresee says what an apply of the layer platform would do to the machines that are there. Mostly that is nothing, which OpenTofu's own
// account of the plan tells; only else the plan is asked for with all of its values, which takes a second one and the provider once more.
func Foresee(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access) (Consequences, error) {
	folder, err := os.MkdirTemp("", "castle-plan-")
	if err != nil {
		return Consequences{}, err
	}
	defer os.RemoveAll(folder)
	if err := plan(ctx, cluster, record, access, run.Plan{Account: folder}); err != nil {
		return Consequences{}, err
	}
	account, err := os.Open(filepath.Join(folder, layers.Platform+".json"))
	if err == nil {
		defer account.Close()
		if leavesMachines(account) {
			return Consequences{}, nil
		}
	}
	whole, err := Plan(ctx, cluster, record, access, nil)
	if err != nil {
		return Consequences{}, err
	}
	return ConsequencesOf(whole), nil
}

// leavesMachines tells whether an account of a plan, which has to be whole, names no machine that would change in any way. A machine that
// stays as it is, is not in it: Plan in internal/command/views/operation.go of OpenTofu v1.12.
func leavesMachines(account io.Reader) bool {
	whole := false
	for lines := json.NewDecoder(account); ; {
		var line struct {
			Type   string `json:"type"`
			Level  string `json:"@level"`
			Change struct {
				Resource struct {
					Type string `json:"resource_type"`
					Name string `json:"resource_name"`
				} `json:"resource"`
			} `json:"change"`
		}
		err := lines.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return whole
		case err != nil, line.Level == "error":
			return false
		case line.Type == "planned_change" && state.IsMachine(line.Change.Resource.Type, line.Change.Resource.Name):
			return false
		case line.Type == "change_summary":
			whole = true
		}
	}
}

// Plan plans the layer platform, or one node of it alone, and gives the plan with all of its values. It holds no secret: none is an input of
// that layer.
func Plan(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access, only *run.OneNode) (*tfjson.Plan, error) {
	folder, err := os.MkdirTemp("", "castle-plan-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, layers.Platform+".json")
	if err := plan(ctx, cluster, record, access, run.Plan{Node: only, Whole: file}); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	plan := &tfjson.Plan{}
	return plan, json.Unmarshal(text, plan)
}

// plan plans the layer, and tells why where that failed.
func plan(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access, plan run.Plan) (err error) {
	var said run.Cause
	units, err := cluster.Units(access, nil, record.Events(), func(_, message string) { said.Add(message) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, units.Close()) }()
	if err := units.Plan(ctx, layers.Named(layers.Platform), plan); err != nil {
		if text := said.Text(); text != "" && ctx.Err() == nil {
			err = errors.New(text)
		}
		return fmt.Errorf("plan the layer %s: %w", layers.Platform, err)
	}
	return nil
}
