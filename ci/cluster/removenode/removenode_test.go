package removenode

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/run"
)

// sick has a node that Kubernetes does not find Ready.
func sick(f *fake, name string) {
	for i := range f.nodes {
		if f.nodes[i].Name == name {
			f.nodes[i].Status.Conditions[0].Status = corev1.ConditionUnknown
		}
	}
}

func silent(f *fake) {
	f.status[leaver] = "silent"
	sick(f, leaver)
}

func TestTheStepsThatANodeLeavesIn(t *testing.T) {
	for name, c := range map[string]struct {
		node   string
		change func(*fake)
		did    []string
	}{
		"a control plane":             {leaver, func(*fake) {}, []string{"drain", "leaves etcd", "reset", "VM 423", "node"}},
		"a worker":                    {"blue-worker-2", func(*fake) {}, []string{"drain", "reset", "VM 425", "node"}},
		"a machine that does not say": {leaver, silent, []string{"cordon", "is taken out of etcd", "VM 423", "node"}},
		"a machine that is off": {leaver, func(f *fake) {
			silent(f)
			f.vms[leaver].Status = "stopped"
		}, []string{"cordon", "is taken out of etcd", "VM 423", "node"}},
		"a machine that Talos has on, and that does not go off": {leaver, func(f *fake) { f.neverOff = true }, []string{"drain", "leaves etcd", "reset", "VM 423", "node"}},
		"a machine of somebody's": {leaver, func(f *fake) { f.described.Platform = config.PlatformTalos },
			[]string{"drain", "leaves etcd", "given back", "VM 423", "node"}},
		"a machine of somebody's that is silent": {leaver, func(f *fake) {
			f.described.Platform = config.PlatformTalos
			silent(f)
		}, []string{"cordon", "is taken out of etcd", "VM 423", "node"}},
		"a Node alone": {leaver, func(f *fake) {
			delete(f.known, leaver)
			delete(f.vms, leaver)
			f.out(leaver)()
			sick(f, leaver)
		}, []string{"cordon", "node"}},
	} {
		f := newFake(t)
		c.change(f)
		l, err := f.leave(t.Context(), c.node)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(f.did, c.did) {
			t.Errorf("%s: it did %v", name, f.did)
		}
		notes := strings.Join(l.notes, "\n")
		if left := strings.Contains(notes, "does not answer and was left as it is"); left != (name == "a machine of somebody's that is silent") {
			t.Errorf("%s: it says %q", name, notes)
		}
	}
}

func TestWhatSpeaksAgainstItIsToldBeforeAnythingIsChanged(t *testing.T) {
	for name, c := range map[string]struct {
		node  string
		spoil func(*fake)
		says  []string
	}{
		"etcd would have no quorum": {leaver, func(f *fake) { f.status["blue-cp-1"] = "silent" }, []string{"etcd would have 1 of 2 members healthy", "nothing was changed"}},
		"no other API":              {leaver, func(f *fake) { f.silentAPIs = true }, []string{"no other control plane than blue-cp-3 serves the API", "blue-cp-1: connection refused", "nothing was changed"}},
		"two things at once": {"blue-worker-2", func(f *fake) { f.orphans, f.planned = []string{"default/alone"}, []string{"module.other"} },
			[]string{"default/alone", "would not only remove blue-worker-2, but change module.other", "nothing was changed"}},
		"no room for pods": {"blue-worker-2", func(f *fake) {
			for _, node := range f.described.Nodes {
				if node.Name != "blue-worker-2" {
					sick(f, node.Name)
				}
			}
		}, []string{"blue-worker-2 is the last node that is Ready and takes pods", "nothing was changed"}},
		"nobody knows it":          {"blue-worker-9", func(*fake) {}, []string{"cluster blue has no node blue-worker-9", "blue-worker-1, blue-worker-2"}},
		"a VM that no state knows": {leaver, func(f *fake) { delete(f.known, leaver) }, []string{"VM 423 of blue-cp-3 is there, and in no state"}},
		"a machine of another's":   {leaver, func(f *fake) { f.notOurs = 1 }, []string{"VM 423 has no tag"}},
		"a Node that still is Ready": {leaver, func(f *fake) {
			delete(f.known, leaver)
			delete(f.vms, leaver)
		}, []string{"no machine of the cluster runs it: it is somebody else's"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t)
			c.spoil(f)
			_, err := f.leave(t.Context(), c.node)
			for _, want := range c.says {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if len(f.did) > 0 {
				t.Errorf("%s: it did %v", name, f.did)
			}
		})
	}
}

// Minutes pass on the way, and a machine is looked at again before it is wiped, and before it is removed.
func TestAMachineThatHasBecomeSomebodyElsesStays(t *testing.T) {
	for at, did := range map[int][]string{2: {"drain", "leaves etcd"}, 3: {"drain", "leaves etcd", "reset"}} {
		f := newFake(t)
		f.notOurs = at
		if _, err := f.leave(t.Context(), leaver); err == nil || !slices.Equal(f.did, did) {
			t.Errorf("at look %d: %v, it did %v", at, err, f.did)
		}
	}
}

func TestAMachineThatDoesNotComeOutOfEtcdIsNotWiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.staysInEtcd = true
		if _, err := f.leave(t.Context(), leaver); err == nil || !strings.Contains(err.Error(), "does not come out of etcd") || slices.Contains(f.did, "reset") {
			t.Errorf("%v; it did %v", err, f.did)
		}
	})
}

func TestTheNextCallEndsWhatAnInterruptedOneHasBegun(t *testing.T) {
	whole := newFake(t)
	if _, err := whole.leave(t.Context(), leaver); err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= whole.changes; at++ {
		for _, after := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f := newFake(t)
			f.interruptAt, f.after, f.interrupt = at, after, cancel
			if _, err := f.leave(ctx, leaver); !errors.Is(err, context.Canceled) {
				t.Errorf("interrupted at %d: %v", at, err)
			}
			if f.changes != at {
				t.Errorf("interrupted at %d, it went on: %v", at, f.did)
			}
			f.interruptAt = 0
			_, err := f.leave(t.Context(), leaver)
			if at == whole.changes && after { // nothing is left to do
				if err == nil || !strings.Contains(err.Error(), "has no node blue-cp-3, or none any more") {
					t.Errorf("after the last step: %v", err)
				}
				continue
			}
			vm, _ := f.Own(t.Context(), leaver)
			if err != nil || vm != nil || len(f.nodes) != len(f.described.Nodes)-1 || len(f.known) != len(f.described.Nodes)-1 || slices.Contains(f.members, leaver) {
				t.Errorf("after an interruption at %d (%t): %v; it did %v", at, after, err, f.did)
			}
		}
	}
}

func TestRemoveNodeIsRefusedBeforeItAsksAnybody(t *testing.T) {
	for _, c := range []struct {
		options Options
		says    string
	}{
		{Options{Node: "blue-worker-9"}, "remove-node removes the VM of blue-worker-9 with its disks: confirm with --confirm blue-worker-9"},
		{Options{}, "confirm with --confirm"},
		{Options{Node: leaver, Confirm: leaver}, "cluster.yaml of cluster blue lists blue-cp-3, and the next create would make it again"},
	} {
		kept := t.TempDir()
		cluster := &run.Cluster{Folder: "../../../terragrunt/live/blue", Layers: "../../../terragrunt", State: kept, AllowUnpinned: true, Out: io.Discard}
		if _, err := Execute(t.Context(), cluster, c.options); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.options, err)
		}
		if made, err := os.ReadDir(kept); err != nil || len(made) > 0 {
			t.Errorf("%+v: something was begun: %v, %v", c.options, made, err)
		}
	}
}
