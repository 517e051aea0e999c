package talos

import (
	"slices"
	"strings"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// reset leaves etcd, wipes the disk or the named partitions of it, and restarts the machine or switches it off: the phases of Reset in
// internal/app/machined/pkg/runtime/v1alpha1/v1alpha1_sequencer.go of Talos 1.13. A machine that cannot leave etcd ends there and
// goes on as it was, wiping nothing. That it drains the node once more before, and goes on where it cannot, is not played.
func (m *machine) reset(in *machineapi.ResetRequest) {
	f := m.fleet
	if in.GetGraceful() && m.settings() != nil && m.settings().control && m.inEtcd() {
		if err := m.leaveEtcd(m.ctx); err != nil {
			f.Log.Error("reset failed: failed to leave cluster", f.name(m), "error", err)
			return
		}
	}
	var labels []string
	for _, partition := range in.GetSystemPartitionsToWipe() {
		if partition.GetWipe() {
			labels = append(labels, strings.ToUpper(partition.GetLabel()))
		}
	}
	system := in.GetMode() != machineapi.ResetRequest_USER_DISKS
	all := system && len(labels) == 0
	f.change(func() {
		d := f.state.disk(m.vm.ID)
		if all || system && slices.Contains(labels, constants.StatePartitionLabel) {
			d.Config = nil
		}
		if all || system && slices.Contains(labels, constants.EphemeralPartitionLabel) {
			d.Etcd = nil
		}
		d.Blank = d.Blank || all
		m.wiped = d.Config == nil
		f.state.forget()
		f.keep()
	})
	if in.GetReboot() {
		m.order(commandReboot)
	} else {
		m.order(commandShutdown)
	}
}

// inEtcd tells whether a machine's disk holds a member's data: one that has left, or never was one, has nothing to leave (LeaveEtcd in
// internal/app/machined/pkg/runtime/v1alpha1/v1alpha1_sequencer_tasks.go of Talos 1.13).
func (m *machine) inEtcd() bool {
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	return m.fleet.state.disk(m.vm.ID).Etcd != nil
}
