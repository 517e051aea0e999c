package create

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
)

// consequences are what an apply of the layer platform would do to machines that are there, by the nodes' names.
type consequences struct {
	removed   []string // with their disks; no node of that name is described any more
	replaced  []string // by new ones with empty disks
	restarted []string
	// controlPlanes are those of them that are one, by the tag that their VMs have.
	controlPlanes []string
}

// live are the attributes of a VM that Proxmox changes while it runs, and those that only tell the provider how to work. For
// every other the provider restarts it (reboot_after_update of bpg/proxmox, true unless it is set).
var live = []string{"description", "on_boot", "tags", "migrate", "reboot", "reboot_after_update", "stop_on_destroy",
	"timeout_clone", "timeout_create", "timeout_migrate", "timeout_move_disk", "timeout_reboot", "timeout_shutdown_vm", "timeout_start_vm", "timeout_stop_vm"}

// consequencesOf reads a plan.
func consequencesOf(plan *tfjson.Plan) consequences {
	var found consequences
	for _, change := range plan.ResourceChanges {
		if change.Type != state.VMType || change.Change == nil {
			continue
		}
		node := fmt.Sprint(change.Index)
		before, _ := change.Change.Before.(map[string]any)
		after, _ := change.Change.After.(map[string]any)
		switch actions := change.Change.Actions; {
		case actions.Replace():
			found.replaced = append(found.replaced, node)
		case actions.Delete():
			found.removed = append(found.removed, node)
		case actions.Update() && restarts(before, after):
			found.restarted = append(found.restarted, node)
		default:
			continue
		}
		if tags, _ := before["tags"].([]any); slices.Contains(tags, any(description.RoleControlPlane)) {
			found.controlPlanes = append(found.controlPlanes, node)
		}
	}
	return found
}

func restarts(before, after map[string]any) bool {
	for name := range after {
		if !slices.Contains(live, name) && !reflect.DeepEqual(before[name], after[name]) {
			return true
		}
	}
	return false
}

// refused says why the consequences are not taken unasked. allowed are the nodes whose loss was typed by name; halfMade are those
// whose machines were never configured: they hold nothing.
func (c consequences) refused(allowed, halfMade []string) error {
	var reasons []error
	refuse := func(nodes []string, what, way string) {
		for _, node := range nodes {
			if !slices.Contains(allowed, node) && !slices.Contains(halfMade, node) {
				reasons = append(reasons, fmt.Errorf("create would %s the VM of %s with its disks, and nothing was changed: %s, or allow it with --allow-replace %s", what, node, way, node))
			}
		}
	}
	refuse(c.removed, "remove", "put it back into cluster.yaml")
	refuse(c.replaced, "replace", "put back in cluster.yaml what was changed of it")
	down := slices.DeleteFunc(slices.Clone(c.controlPlanes), func(node string) bool { return slices.Contains(halfMade, node) })
	if len(down) > 1 {
		slices.Sort(down)
		reasons = append(reasons, fmt.Errorf("create would take down the control planes %s at the same time, and etcd with them; nothing was changed: change one of them in cluster.yaml, create, then the next",
			strings.Join(down, ", ")))
	}
	return errors.Join(reasons...)
}

// foresee plans the layer platform, and refuses what would take machines down or away unasked. known are those in its state.
func foresee(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access, known state.VMs, allowed []string) error {
	machines := cluster.Hypervisor(access)
	defer machines.Close()
	begun, err := machines.Begun(cluster.State)
	if err != nil {
		return err
	}
	plan, err := planPlatform(ctx, cluster, record, access)
	if err != nil {
		return err
	}
	// The note alone could be an old one: another machine may have gone on since, with the same state.
	halfMade := slices.DeleteFunc(begun, func(node string) bool { return !known[node].Tainted })
	return consequencesOf(plan).refused(allowed, halfMade)
}

// planPlatform is the plan of the layer platform. It holds no secret: none is an input of that layer.
func planPlatform(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access) (*tfjson.Plan, error) {
	folder, err := os.MkdirTemp("", "castle-plan-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	var said run.Cause
	runner, err := cluster.Runner(access, record.Events(), func(_, message string) { said.Add(message) })
	if err != nil {
		return nil, err
	}
	unit := layers.Named(layers.Platform).Folder
	runner.Only, runner.Plans = unit, folder
	if _, err := runner.RunAll(ctx, "plan"); err != nil {
		if text := said.Text(); text != "" && ctx.Err() == nil {
			err = errors.New(text)
		}
		return nil, fmt.Errorf("plan the layer %s: %w", layers.Platform, err)
	}
	text, err := os.ReadFile(filepath.Join(folder, unit, "tfplan.json"))
	if err != nil {
		return nil, err
	}
	plan := &tfjson.Plan{}
	return plan, json.Unmarshal(text, plan)
}
