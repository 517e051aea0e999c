package platform

import (
	"fmt"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"

	"tazlab.net/castle/ci/cluster/config"
)

func vm(node string, before, after map[string]any, actions ...tfjson.Action) *tfjson.ResourceChange {
	return &tfjson.ResourceChange{Type: "proxmox_virtual_environment_vm", Name: "node", Index: node,
		Change: &tfjson.Change{Actions: actions, Before: before, After: after}}
}

func machine(role string, megabytes int) map[string]any {
	return map[string]any{"memory": []any{map[string]any{"dedicated": megabytes}}, "tags": []any{"blue", "castle", role}}
}

// disksOf is a worker with disks of so many GiB.
func disksOf(sizes ...float64) map[string]any {
	vm := machine("worker", 1)
	var list []any
	for i, size := range sizes {
		list = append(list, map[string]any{"interface": fmt.Sprintf("scsi%d", i), "size": size})
	}
	vm["disk"] = list
	return vm
}

func TestWhatTakesMachinesDownOrAwayIsRefusedUnlessItWasTypedByName(t *testing.T) {
	controlPlane := func(megabytes int) map[string]any { return machine("controlplane", megabytes) }
	worker := func(megabytes int) map[string]any { return machine("worker", megabytes) }
	update := []tfjson.Action{tfjson.ActionUpdate}
	replace := []tfjson.Action{tfjson.ActionDelete, tfjson.ActionCreate}
	cases := map[string]struct {
		changes           []*tfjson.ResourceChange
		allowed, halfMade []string
		want              []string // parts of the lines, nil: nothing is refused
	}{
		"nothing":      {changes: []*tfjson.ResourceChange{vm("blue-cp-1", controlPlane(1), controlPlane(1), tfjson.ActionNoop)}},
		"new machines": {changes: []*tfjson.ResourceChange{vm("blue-cp-1", nil, controlPlane(1), tfjson.ActionCreate)}},
		"something else": {changes: []*tfjson.ResourceChange{{Type: "terraform_data", Index: "blue-cp-1",
			Change: &tfjson.Change{Actions: replace}}}},
		"removed": {changes: []*tfjson.ResourceChange{vm("blue-worker-9", worker(1), nil, tfjson.ActionDelete)},
			want: []string{"create would remove the VM of blue-worker-9 with its disks, and nothing was changed: have the node leave with dagger call remove-node --cluster blue --node blue-worker-9 --confirm blue-worker-9, put it back into cluster.yaml, or allow the loss of its disks with --allow-replace blue-worker-9"}},
		"removed, another one allowed": {changes: []*tfjson.ResourceChange{vm("blue-worker-9", worker(1), nil, tfjson.ActionDelete)},
			allowed: []string{"blue-worker-1"}, want: []string{"remove the VM of blue-worker-9"}},
		"replaced": {changes: []*tfjson.ResourceChange{vm("blue-worker-1", worker(1), worker(1), replace...), vm("blue-worker-2", worker(1), worker(1), replace...)},
			want: []string{"create would replace the VM of blue-worker-1", "create would replace the VM of blue-worker-2"}},
		"replaced as allowed": {changes: []*tfjson.ResourceChange{vm("blue-cp-1", controlPlane(1), controlPlane(1), replace...), vm("blue-cp-2", controlPlane(1), controlPlane(1), tfjson.ActionNoop)},
			allowed: []string{"blue-cp-1"}},
		"a disk taken away":    {changes: []*tfjson.ResourceChange{vm("blue-worker-1", disksOf(40, 100), disksOf(40), update...)}, want: []string{"create would take a disk of blue-worker-1 away"}},
		"a disk made smaller":  {changes: []*tfjson.ResourceChange{vm("blue-worker-1", disksOf(40, 100), disksOf(40, 90), update...)}, want: []string{"create would take a disk of blue-worker-1 away"}},
		"a disk made larger":   {changes: []*tfjson.ResourceChange{vm("blue-worker-1", disksOf(40, 100), disksOf(40, 200, 10), update...)}},
		"a disk away, allowed": {changes: []*tfjson.ResourceChange{vm("blue-worker-1", disksOf(40, 100), disksOf(40), update...)}, allowed: []string{"blue-worker-1"}},
		"the only control plane": {changes: []*tfjson.ResourceChange{vm("blue-cp-1", controlPlane(1), controlPlane(1), replace...), vm("blue-worker-1", worker(1), worker(1), tfjson.ActionNoop)},
			allowed: []string{"blue-cp-1"}, want: []string{"create would take away blue-cp-1, the only control plane, and with it etcd and all that the cluster is; nothing was changed"}},
		"the only control plane, half made":       {changes: []*tfjson.ResourceChange{vm("blue-cp-1", controlPlane(1), controlPlane(1), replace...)}, halfMade: []string{"blue-cp-1"}},
		"the only control plane is restarted":     {changes: []*tfjson.ResourceChange{vm("blue-cp-1", controlPlane(1), controlPlane(2), update...)}},
		"half made":                               {changes: []*tfjson.ResourceChange{vm("blue-cp-1", controlPlane(1), controlPlane(1), replace...), vm("blue-cp-2", controlPlane(1), controlPlane(1), replace...)}, halfMade: []string{"blue-cp-1", "blue-cp-2"}},
		"workers restarted":                       {changes: []*tfjson.ResourceChange{vm("blue-worker-1", worker(1), worker(2), update...), vm("blue-worker-2", worker(1), worker(2), update...)}},
		"control planes that need not be stopped": {changes: []*tfjson.ResourceChange{vm("blue-cp-1", map[string]any{"tags": []any{"controlplane"}}, map[string]any{"tags": []any{"controlplane", "x"}}, update...), vm("blue-cp-2", map[string]any{"tags": []any{"controlplane"}}, map[string]any{"tags": []any{"controlplane", "x"}}, update...)}},
		"control planes restarted":                {changes: []*tfjson.ResourceChange{vm("blue-cp-2", controlPlane(1), controlPlane(2), update...), vm("blue-cp-1", controlPlane(1), controlPlane(2), update...)}},
		"one restarted, one replaced as allowed": {changes: []*tfjson.ResourceChange{vm("blue-cp-2", controlPlane(1), controlPlane(2), update...), vm("blue-cp-1", controlPlane(1), controlPlane(2), replace...)},
			allowed: []string{"blue-cp-1"}},
		"two control planes removed as allowed": {changes: []*tfjson.ResourceChange{vm("blue-cp-4", controlPlane(1), nil, tfjson.ActionDelete), vm("blue-cp-5", controlPlane(1), nil, tfjson.ActionDelete), vm("blue-cp-1", controlPlane(1), controlPlane(1), tfjson.ActionNoop)},
			allowed: []string{"blue-cp-4", "blue-cp-5"}, want: []string{"create would take away the control planes blue-cp-4, blue-cp-5 at the same time"}},
	}
	for name, c := range cases {
		err := ConsequencesOf(&tfjson.Plan{ResourceChanges: c.changes}).Refused(&config.Cluster{Name: "blue"}, c.allowed, c.halfMade)
		var lines []string
		if err != nil {
			lines = strings.Split(err.Error(), "\n")
		}
		if len(lines) != len(c.want) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s: %s", name, lines[i])
			}
		}
	}
}

// more is a VM with other memory.
func more(vm map[string]any) map[string]any {
	vm["memory"] = []any{map[string]any{"dedicated": 2}}
	return vm
}

// A machine that castle did not make goes on when its record is gone: no flag lets that happen.
func TestAMachineThatIsThereIsNotForgottenUnasked(t *testing.T) {
	record := func(role string) map[string]any {
		return map[string]any{"input": map[string]any{"role": role, "address": "192.168.1.211"}}
	}
	change := func(node, role string, actions ...tfjson.Action) *tfjson.ResourceChange {
		return &tfjson.ResourceChange{Type: "terraform_data", Name: "node", Index: node, Change: &tfjson.Change{Actions: actions, Before: record(role), After: record(role)}}
	}
	found := ConsequencesOf(&tfjson.Plan{ResourceChanges: []*tfjson.ResourceChange{
		change("metal-cp-1", "controlplane", tfjson.ActionNoop), change("metal-cp-2", "controlplane", tfjson.ActionDelete, tfjson.ActionCreate),
		change("metal-worker-1", "worker", tfjson.ActionDelete), change("metal-worker-2", "worker", tfjson.ActionCreate),
	}})
	if strings.Join(found.ControlPlanes, " ") != "metal-cp-2" || found.Remaining != 1 {
		t.Errorf("found %+v", found)
	}
	err := found.Refused(&config.Cluster{Name: "metal", Platform: config.PlatformTalos}, []string{"metal-worker-1"}, nil)
	if err == nil {
		t.Fatal("nothing is refused")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], "another address or role than its machine has") ||
		strings.Contains(err.Error(), "VM") || strings.Contains(err.Error(), "--allow-replace") {
		t.Errorf("refused by\n%v", err)
	}
	err = ConsequencesOf(&tfjson.Plan{ResourceChanges: []*tfjson.ResourceChange{change("metal-worker-1", "worker", tfjson.ActionDelete)}}).
		Refused(&config.Cluster{Name: "metal", Platform: config.PlatformTalos}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "does not list metal-worker-1 any more") || !strings.Contains(err.Error(), "remove-node --cluster metal --node metal-worker-1") {
		t.Errorf("refused by\n%v", err)
	}
}

func TestWhoIsRestartedIsKnown(t *testing.T) {
	changes := []*tfjson.ResourceChange{
		vm("blue-cp-1", machine("controlplane", 1), machine("controlplane", 2), tfjson.ActionUpdate),
		vm("blue-cp-2", map[string]any{"tags": []any{"controlplane"}}, map[string]any{"tags": []any{"controlplane", "x"}}, tfjson.ActionUpdate),
		vm("blue-worker-1", machine("worker", 1), machine("worker", 2), tfjson.ActionUpdate),
		vm("blue-worker-2", machine("worker", 1), machine("worker", 1), tfjson.ActionNoop),
		vm("blue-worker-3", disksOf(40), disksOf(60, 10), tfjson.ActionUpdate),
		vm("blue-worker-4", disksOf(40), more(disksOf(60)), tfjson.ActionUpdate),
		vm("blue-worker-5", disksOf(40), more(disksOf(40, 10)), tfjson.ActionUpdate),
	}
	found := ConsequencesOf(&tfjson.Plan{ResourceChanges: changes})
	if strings.Join(found.Restarted, " ") != "blue-cp-1 blue-worker-1 blue-worker-3 blue-worker-4 blue-worker-5" {
		t.Errorf("%v are restarted", found.Restarted)
	}
	// The provider lets no disk grow of a machine that runs and waits for a restart.
	if strings.Join(found.Offline, " ") != "blue-worker-4" {
		t.Errorf("%v are changed while they are off", found.Offline)
	}
}
