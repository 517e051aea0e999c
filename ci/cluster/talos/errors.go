package talos

import (
	"fmt"
	"net/netip"
	"strings"
)

// GhostError is a machine, or an etcd member, that remembers another cluster: it holds that cluster's PKI, its etcd data, or
// its place in the member list. Waiting does not help.
type GhostError struct {
	Node    string     // as declared; "" for an etcd member that no node declares
	Address netip.Addr // of the node or the member
	Seen    string     // what proves it, without secrets
	// Fresh tells that the machine took its configuration in this run: nothing that it holds is this cluster's.
	Fresh bool
}

func (e *GhostError) Error() string {
	who := e.Node
	if who == "" {
		who = "an etcd member"
	}
	way := "what it holds may be alive. Where TALOS_SECRETS was changed, bring its earlier version back in Infisical; where the machine is left over from another cluster, remove its VM in Proxmox or wipe its disk, or the member with talosctl etcd remove-member, and create"
	if e.Fresh {
		way = "destroy the cluster and then create it, which gives every machine an empty disk"
	}
	return fmt.Sprintf("%s (%s) remembers another cluster: %s; %s", who, e.Address, e.Seen, way)
}

// AlarmError is an etcd that takes no more writes until somebody has seen to it. All that it holds is there.
type AlarmError struct {
	Node    string // whose member raised it; "" where it is in nobody's place
	Address netip.Addr
	Alarm   string // "NOSPACE", "CORRUPT"
}

func (e *AlarmError) Error() string {
	text := fmt.Sprintf("etcd of %s (%s) raised the alarm %s: ", e.Node, e.Address, e.Alarm)
	if e.Node == "" {
		text = fmt.Sprintf("etcd raised the alarm %s: ", e.Alarm)
	}
	switch e.Alarm {
	case "NOSPACE":
		return text + "its database is full, and it takes no more writes; nothing is lost. Defragment each control plane in turn (talosctl --nodes ADDRESS etcd defrag), then clear the alarm (talosctl --nodes ADDRESS etcd alarm disarm)"
	case "CORRUPT":
		return text + "the members hold different data, and it takes no more writes. Take a snapshot first (talosctl --nodes ADDRESS etcd snapshot FILE), and look which member differs"
	}
	return text + "look at talosctl --nodes ADDRESS etcd alarm list"
}

// UnwellError is a control plane that was configured before this run and whose etcd does not come back. What it holds may be
// this cluster's, and alive.
type UnwellError struct {
	Node    string
	Address netip.Addr
	Seen    string // what proves it, without secrets
}

func (e *UnwellError) Error() string {
	return fmt.Sprintf("%s (%s) was configured before, and its etcd does not come back: %s; its data may be alive, so look at talosctl --nodes %s logs etcd, and at the machine's disk and memory",
		e.Node, e.Address, e.Seen, e.Address)
}

// LateError is a control plane that does not get into etcd, of which nothing says that waiting does not help.
type LateError struct {
	Node    string
	Address netip.Addr
	Waited  string
	Seen    string // the last thing seen, without secrets
}

func (e *LateError) Error() string {
	return fmt.Sprintf("%s (%s) is no healthy member of etcd and has not got further for %s, last seen: %s; look at talosctl --nodes %s dmesg, which tells of clock, pulls and joins, and create again, which goes on from there",
		e.Node, e.Address, e.Waited, e.Seen, e.Address)
}

// DriftError is a node that is not at its declared address while a machine answers at another one.
type DriftError struct {
	Node     string
	Declared netip.Addr
	Live     []netip.Addr // found by a search of the subnet
}

func (e *DriftError) Error() string {
	var live []string
	for _, address := range e.Live {
		live = append(live, address.String())
	}
	return fmt.Sprintf("%s does not answer at its declared address %s, while a Talos machine that no node declares answers at %s: give the virtual machine its static address, or correct the description",
		e.Node, e.Declared, strings.Join(live, ", "))
}

// SilentError is a node that did not come to its configured API in time.
type SilentError struct {
	Node    string
	Address netip.Addr
	Waited  string
	Seen    string // the last thing seen
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("%s (%s) did not answer with its configuration for %s, last seen: %s; look at its console", e.Node, e.Address, e.Waited, e.Seen)
}
