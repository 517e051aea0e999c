//go:build linux

package scenarios

import (
	"maps"
	"strings"
	"syscall"
	"testing"

	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
)

// TestAStoragesLockIsWaitedForOrNamed: another task holds it for longer than Proxmox waits. The storage is a shared one, of whose lock the
// provider does not know that it passes.
func TestAStoragesLockIsWaitedForOrNamed(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	shared := change{file: "live/sandbox/world.yaml", from: "  nodes: [pve]\n", to: "  nodes: [pve]\n  storages: [{id: local-lvm, type: rbd, shared: true}]\n"}
	w := newWorld(t, "none", "0", append(justPlatform(), shared)...)
	const lock = "cfs-lock 'storage-local-lvm' error: got lock request timeout"
	w.on("storage-lock=1000")
	w.castle("create").failsWith("layer platform failed", lock, resumes)
	w.off(syscall.SIGTERM)

	w.on("storage-lock=4")
	w.castle("create").succeeds()
	met := w.event(func(e timeline.Event) bool {
		return e.Kind == timeline.KindLayer && e.Layer == "platform" && e.Result == timeline.ResultFailed && strings.Contains(e.Cause, lock)
	})
	if met.Kind == "" {
		t.Fatalf("the run does not tell of the lock: %+v", w.events())
	}
	tell.Observation(t, met.Time.Sub(w.events()[0].Time), "%s", met.Cause)
	w.hasExactlyItsVMs()
	w.hasAQuorum(w.unsealed("talosconfig"))

	starts := w.starts()
	for _, node := range w.cluster.Nodes {
		if starts[node.Name] != 1 {
			t.Errorf("%s was given power %d times", node.Name, starts[node.Name])
		}
	}
	w.castle("create").succeeds()
	if got := w.starts(); !maps.Equal(got, starts) {
		t.Errorf("the machines were started %v times, and are %v after a create that has nothing to do", starts, got)
	}
}
