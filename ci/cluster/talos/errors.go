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
}

func (e *GhostError) Error() string {
	who := e.Node
	if who == "" {
		who = "an etcd member"
	}
	return fmt.Sprintf("%s (%s) remembers another cluster: %s; destroy the cluster and then create it, which gives every machine an empty disk", who, e.Address, e.Seen)
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
	return fmt.Sprintf("%s (%s) did not answer with its configuration for %s, last seen: %s; look at its console in Proxmox", e.Node, e.Address, e.Waited, e.Seen)
}
