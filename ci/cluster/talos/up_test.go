package talos_test

import (
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/talos"
)

func TestFiveBlankMachinesBecomeAQuorum(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	report, took := w.mustCreate()
	if took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	if report.Bootstraps != 1 {
		t.Errorf("%d bootstraps", report.Bootstraps)
	}
	if !report.Quorum.Complete() || report.Quorum.Healthy() != 3 || report.Quorum.Leader == "" {
		t.Errorf("quorum: %s", report.Quorum)
	}
	for _, node := range report.Nodes {
		if node.Result != talos.Configured {
			t.Errorf("%s is %q", node.Name, node.Result)
		}
	}
	w.eventually("a control plane on each of three machines", func() bool { return w.controlPlanes() == 3 })
	w.eventually("a kubelet on each of five machines", func() bool { return w.kubelets() == 5 })
	w.eventually("a holder of the virtual address", func() bool { return w.holder() != "" })
}

func TestASecondUpChangesNothing(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	first, _ := w.mustCreate()
	second, took := w.mustCreate()
	if second.Changed() {
		t.Errorf("changed: %+v", second)
	}
	if took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	for i, member := range second.Quorum.Members {
		if member.ID != first.Quorum.Members[i].ID {
			t.Errorf("%s is another member now", member.Node)
		}
	}
}
