// Package platform foresees what an apply of the layer platform would do to machines that are there, and says what of it is not
// done unasked.
package platform

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers/state"
)

// Consequences are what an apply of the layer platform would do to machines that are there, by the nodes' names.
type Consequences struct {
	Removed   []string // with their disks; no node of that name is described any more
	Replaced  []string // by new ones with empty disks
	Restarted []string
	// Offline are those of the restarted whose disks grow beside something else that waits for a restart: the provider does that to a
	// machine that is off, and fails with one that runs (resize disks in vmUpdate of bpg/proxmox v0.106.0).
	Offline []string
	// Shrunk lose a disk, or a part of one, and what is on it.
	Shrunk []string
	// ControlPlanes are those that are one of the removed and replaced, by the tag that their VMs have, or by their record.
	ControlPlanes []string
	// Remaining is how many control planes stay.
	Remaining int
}

// live are the attributes of a VM that Proxmox changes while it runs, and those that only tell the provider how to work. For every other
// castle restarts it: the provider is told not to (reboot_after_update).
var live = []string{"description", "on_boot", "tags", "migrate", "reboot", "reboot_after_update", "stop_on_destroy", "purge_on_destroy",
	"delete_unreferenced_disks_on_destroy",
	"timeout_clone", "timeout_create", "timeout_migrate", "timeout_move_disk", "timeout_reboot", "timeout_shutdown_vm", "timeout_start_vm", "timeout_stop_vm"}

// ConsequencesOf reads a plan.
func ConsequencesOf(plan *tfjson.Plan) Consequences {
	var found Consequences
	for _, change := range plan.ResourceChanges {
		if !state.IsMachine(change.Type, change.Name) || change.Change == nil {
			continue
		}
		node := fmt.Sprint(change.Index)
		before, _ := change.Change.Before.(map[string]any)
		after, _ := change.Change.After.(map[string]any)
		tags, _ := before["tags"].([]any)
		record, _ := before["input"].(map[string]any)
		control := slices.Contains(tags, any(config.RoleControlPlane)) || record["role"] == config.RoleControlPlane
		switch actions := change.Change.Actions; {
		case actions.Replace():
			found.Replaced = append(found.Replaced, node)
		case actions.Delete():
			found.Removed = append(found.Removed, node)
		case actions.Update() && shrinks(before, after):
			found.Shrunk = append(found.Shrunk, node)
			fallthrough
		case actions.Update() && restarts(before, after):
			found.Restarted = append(found.Restarted, node)
			if grows(before, after) && restarts(withoutDisks(before), withoutDisks(after)) {
				found.Offline = append(found.Offline, node)
			}
			fallthrough
		default:
			if control {
				found.Remaining++
			}
			continue
		}
		if control {
			found.ControlPlanes = append(found.ControlPlanes, node)
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

// shrinks tells whether a disk goes or gets smaller.
func shrinks(before, after map[string]any) bool {
	left := disks(after)
	for place, size := range disks(before) {
		if now, stays := left[place]; !stays || now < size {
			return true
		}
	}
	return false
}

// grows tells whether a disk that is there gets larger.
func grows(before, after map[string]any) bool {
	left := disks(after)
	for place, size := range disks(before) {
		if left[place] > size {
			return true
		}
	}
	return false
}

// withoutDisks is a VM in all that does not concern its disks.
func withoutDisks(vm map[string]any) map[string]any {
	others := maps.Clone(vm)
	delete(others, "disk")
	return others
}

// disks are the sizes of a VM's disks by their places on the bus.
func disks(vm map[string]any) map[any]float64 {
	found := map[any]float64{}
	list, _ := vm["disk"].([]any)
	for _, item := range list {
		disk, _ := item.(map[string]any)
		size, _ := disk["size"].(float64)
		found[disk["interface"]] = size
	}
	return found
}

// Refused says why the consequences are not taken unasked, for a cluster as it is described. allowed are the nodes whose loss was typed by
// name; halfMade are those whose machines were never configured: they hold nothing.
func (c Consequences) Refused(cluster *config.Cluster, allowed, halfMade []string) error {
	var reasons []error
	refuse := func(nodes []string, format string) {
		for _, node := range nodes {
			if !slices.Contains(allowed, node) && !slices.Contains(halfMade, node) {
				reasons = append(reasons, fmt.Errorf(format, node, RemoveCall(cluster.Name, node)))
			}
		}
	}
	if !cluster.MakesMachines() {
		allowed, halfMade = nil, nil // no word makes a machine go that nobody can take away
		refuse(c.Removed, "cluster.yaml does not list %[1]s any more, whose machine would go on as a node of the cluster, and nothing was changed: have it leave with %[2]s, or put it back into cluster.yaml")
		refuse(c.Replaced, "cluster.yaml gives %[1]s another address or role than its machine has, and nothing was changed: put back what was changed of it, or have it leave first (take it out of cluster.yaml, %[2]s, put it back)")
		return errors.Join(reasons...)
	}
	const lost = ", or allow the loss of its disks with --allow-replace %[1]s"
	refuse(c.Removed, "create would remove the VM of %[1]s with its disks, and nothing was changed: have the node leave with %[2]s, put it back into cluster.yaml"+lost)
	refuse(c.Replaced, "create would replace the VM of %[1]s with its disks, and nothing was changed: put back in cluster.yaml what was changed of it, have it leave first (take it out of cluster.yaml, %[2]s, put it back)"+lost)
	refuse(c.Shrunk, "create would take a disk of %[1]s away, or a part of one, with what is on it, and nothing was changed: put back in cluster.yaml what was changed of its disks, have it leave first (take it out of cluster.yaml, %[2]s, put it back)"+lost)
	down := slices.DeleteFunc(slices.Clone(c.ControlPlanes), func(node string) bool { return slices.Contains(halfMade, node) })
	switch {
	case len(down) == 1 && c.Remaining == 0:
		reasons = append(reasons, fmt.Errorf("create would take away %s, the only control plane, and with it etcd and all that the cluster is; nothing was changed: take the change back, or destroy the cluster and create it",
			down[0]))
	case len(down) > 1:
		slices.Sort(down)
		reasons = append(reasons, fmt.Errorf("create would take away the control planes %s at the same time, and etcd with them; nothing was changed: let one of them go, create, then the next",
			strings.Join(down, ", ")))
	}
	return errors.Join(reasons...)
}

// RemoveCall is the call by which a node leaves properly.
func RemoveCall(cluster, node string) string {
	return fmt.Sprintf("dagger call remove-node --cluster %s --node %s --confirm %s", cluster, node, node)
}
