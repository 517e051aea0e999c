package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	tfjson "github.com/hashicorp/terraform-json"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/run"
)

// Plan plans the layer platform, or one node of it alone. The plan holds no secret: none is an input of that layer.
func Plan(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access, only *run.OneNode) (*tfjson.Plan, error) {
	folder, err := os.MkdirTemp("", "castle-plan-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	var said run.Cause
	runner, err := cluster.PlatformRunner(access, record.Events(), func(_, message string) { said.Add(message) }, only)
	if err != nil {
		return nil, err
	}
	runner.Plans = folder
	if _, err := runner.RunAll(ctx, append([]string{"plan"}, cluster.Only(only)...)...); err != nil {
		if text := said.Text(); text != "" && ctx.Err() == nil {
			err = errors.New(text)
		}
		return nil, fmt.Errorf("plan the layer %s: %w", layers.Platform, err)
	}
	text, err := os.ReadFile(filepath.Join(folder, layers.Named(layers.Platform).Folder, "tfplan.json"))
	if err != nil {
		return nil, err
	}
	plan := &tfjson.Plan{}
	return plan, json.Unmarshal(text, plan)
}
