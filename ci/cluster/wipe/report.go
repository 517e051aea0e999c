package wipe

import (
	"context"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
)

// Report is what goes, or has gone, and what stays.
type Report struct {
	Cluster string   `json:"cluster"`
	Proxmox string   `json:"proxmox"`
	Done    bool     `json:"done"` // false: it was only listed, or not finished
	Remove  []VM     `json:"remove"`
	Stay    []VM     `json:"stay"`
	States  []string `json:"states"` // layers whose states were taken away; each is kept as a copy
	// Kept are volumes with the id of a VM that goes, which its configuration does not name.
	Kept []Volume `json:"kept"`

	Unseen string `json:"unseen,omitempty"` // what could not be looked up

	condemned []hypervisor.VM
	kept      []hypervisor.Leftover
}

// VM is one of Proxmox's.
type VM struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Host string `json:"host"`
	Why  string `json:"why,omitempty"` // it stays

	Volumes []string `json:"volumes,omitempty"` // that go with it
}

// Volume is one of a storage's, which stays.
type Volume struct {
	Name string `json:"name"`
	Host string `json:"host"`
	VM   int    `json:"vm"` // whose id it has
	Fix  string `json:"fix"`
}

func newReport(described *config.Cluster, remove []hypervisor.VM, stay []hypervisor.Staying) *Report {
	r := &Report{Cluster: described.Name, Proxmox: described.Proxmox.URL, condemned: remove,
		Remove: []VM{}, Stay: []VM{}, States: []string{}, Kept: []Volume{}}
	for _, vm := range remove {
		r.Remove = append(r.Remove, VM{ID: vm.ID, Name: vm.Name, Host: vm.Host})
	}
	for _, vm := range stay {
		r.Stay = append(r.Stay, VM{ID: vm.ID, Name: vm.Name, Host: vm.Host, Why: vm.Why})
	}
	return r
}

// lists looks up which volumes go with the machines, and which stay that have their ids.
func (r *Report) lists(ctx context.Context, machines proxmox) (err error) {
	for i, vm := range r.condemned {
		if r.Remove[i].Volumes, err = machines.Volumes(ctx, vm); err != nil {
			return err
		}
	}
	if r.kept, err = machines.Unreferenced(ctx, r.condemned); err != nil {
		r.Unseen = fmt.Sprintf("not looked up: whether storages have other disks with these ids, which would stay: %v", err)
	}
	for _, l := range r.kept {
		r.Kept = append(r.Kept, Volume{l.Volume, l.VM.Host, l.VM.ID, l.FixOfAnyones()})
	}
	return nil
}

// Text is for a person.
func (r *Report) Text() string {
	var out strings.Builder
	what := "would be removed"
	if r.Done {
		what = "was removed"
	}
	fmt.Fprintf(&out, "cluster %s on %s\n", r.Cluster, r.Proxmox)
	if len(r.Remove) == 0 {
		fmt.Fprintf(&out, "\nno VM %s\n", what)
	} else {
		fmt.Fprintf(&out, "\n%s, with its disks:\n", what)
	}
	for _, vm := range r.Remove {
		fmt.Fprintf(&out, "  VM %d %s on %s\n", vm.ID, vm.Name, vm.Host)
		for _, volume := range vm.Volumes {
			fmt.Fprintf(&out, "    %s\n", volume)
		}
	}
	if len(r.Stay)+len(r.Kept) > 0 {
		out.WriteString("\nstays:\n")
	}
	for _, vm := range r.Stay {
		fmt.Fprintf(&out, "  VM %d %s on %s: %s\n", vm.ID, vm.Name, vm.Host, vm.Why)
	}
	for _, volume := range r.Kept {
		fmt.Fprintf(&out, "  %s on %s: it has the id of VM %d, whose configuration does not name it: %s\n",
			volume.Name, volume.Host, volume.VM, volume.Fix)
	}
	switch {
	case !r.Done:
		fmt.Fprintf(&out, "\nnothing was changed: the layers' states go as well, with a copy of each kept; confirm with --confirm %s\n", r.Cluster)
	case len(r.States) > 0:
		fmt.Fprintf(&out, "\nthe states of %s were taken away; a copy of each is kept\n", strings.Join(r.States, ", "))
	default:
		out.WriteString("\nthere was no state\n")
	}
	if r.Unseen != "" {
		fmt.Fprintf(&out, "\n%s\n", r.Unseen)
	}
	return out.String()
}

// Markdown is the same for a job's summary.
func (r *Report) Markdown() string { return rendering.Block("text", r.Text()) }
