package wipe

import (
	"fmt"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/description"
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

	Unseen string `json:"unseen,omitempty"` // what of its end could not be looked up

	condemned []hypervisor.VM
}

// VM is one of Proxmox's.
type VM struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Host string `json:"host"`
	Why  string `json:"why,omitempty"` // it stays
}

func newReport(described *description.Cluster, remove []hypervisor.VM, stay []hypervisor.Staying) *Report {
	r := &Report{Cluster: described.Name, Proxmox: described.Proxmox.URL, Remove: []VM{}, Stay: []VM{}, States: []string{}, condemned: remove}
	for _, vm := range remove {
		r.Remove = append(r.Remove, VM{ID: vm.ID, Name: vm.Name, Host: vm.Host})
	}
	for _, vm := range stay {
		r.Stay = append(r.Stay, VM{vm.ID, vm.Name, vm.Host, vm.Why})
	}
	return r
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
	}
	for i, vm := range r.Stay {
		if i == 0 {
			out.WriteString("\nstays:\n")
		}
		fmt.Fprintf(&out, "  VM %d %s on %s: %s\n", vm.ID, vm.Name, vm.Host, vm.Why)
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
