//go:build linux

package main

import (
	"regexp"
	"slices"
	"time"

	"tazlab.net/castle/ci/cluster"
	"tazlab.net/castle/ci/sandbox/profile"
)

const (
	// vmsAtOnce is how many VMs are made at once; terragrunt/root.hcl says the same.
	vmsAtOnce = 3
	// clonesAtOnce is how many clones of one template the proving ground's storage makes at once; ci/sandbox/proxmox says the same.
	clonesAtOnce = 2
)

// delays is how long the delays of a world alone take, along the path that nothing can shorten: what `create` would take if
// its own work and all that is real took no time. All times are since the start.
type delays struct {
	Secrets, Platform, Engine, Networking, Storage, GitOps time.Duration
}

// total is the end of the last layer.
func (d delays) total() time.Duration {
	return max(d.Engine, d.Networking, d.Storage, d.GitOps)
}

// criticalPath adds the delays up. The nodes are in the order in which their VMs were begun, which OpenTofu chooses: as soon
// as one VM is made, the next one begins.
func criticalPath(d profile.Delays, nodes []cluster.Node) delays {
	var at delays
	// A login, the list of secrets, and the machine secrets written back.
	at.Secrets = d.InfisicalLogin + 2*d.InfisicalRequest
	at.Platform = platformPath(d, at.Secrets, nodes)

	// External Secrets Operator logs in, asks and gives its token back, for each object that it looks after: the store lists,
	// a secret asks for each of its keys, one after the other. A secret waits for its store.
	session := func(requests int) time.Duration {
		return d.InfisicalLogin + time.Duration(requests+1)*d.InfisicalRequest
	}
	at.Engine = at.Platform + d.Pull("external-secrets/external-secrets") + d.WebhookServes + session(1) + session(1)
	at.Networking = at.Platform + d.Pull("metallb/controller") + d.WebhookServes
	at.Storage = at.Platform + d.Pull("longhornio/longhorn-manager")
	// Flux's images come while its credentials (user name, password, authority) do; then the blog's image does.
	at.GitOps = at.Engine + max(d.Pull("fluxcd/source-controller"), session(3)) + d.Pull("blog")
	return at
}

func platformPath(d profile.Delays, begin time.Duration, nodes []cluster.Node) time.Duration {
	// A VM is a clone, its configuration, its disk's size, and its start. The next one begins when a hand is free, and is
	// cloned when the storage is.
	hands, storage := make([]time.Duration, vmsAtOnce), make([]time.Duration, clonesAtOnce)
	for _, places := range [][]time.Duration{hands, storage} {
		for i := range places {
			places[i] = begin
		}
	}
	made := make([]time.Duration, len(nodes))
	var all time.Duration
	for i := range nodes {
		hand, place := soonest(hands), soonest(storage)
		cloned := max(hands[hand], storage[place]) + d.VMClone
		made[i] = cloned + 2*d.VMConfig + d.VMStart
		storage[place], hands[hand] = cloned, made[i]
		all = max(all, made[i])
	}
	// Talos is configured when all VMs are made. The control plane that the description names first is bootstrapped; the others
	// join it.
	var last, first time.Duration
	var others []time.Duration
	leading := bootstrapped(nodes)
	for i, node := range nodes {
		runs := max(made[i]+d.Boot, all) + d.Install + d.Reboot
		last = max(last, runs)
		switch {
		case i == leading:
			first = runs
		case node.Role == cluster.RoleControlPlane:
			others = append(others, runs)
		}
	}
	leader := first + d.Bootstrap
	quorum := leader
	for _, runs := range others {
		quorum = max(quorum, max(runs, leader)+d.EtcdJoin)
	}
	api := leader + d.ControlPlane
	// From the running node to its registration, in both simulators, and from there to Ready.
	nodesReady := max(api, last) + 3*d.Kubelet
	return max(quorum, leader+d.VIP, api, nodesReady)
}

// soonest is the index of the earliest time.
func soonest(times []time.Duration) int {
	return slices.Index(times, slices.Min(times))
}

// bootstrapped is the index of the control plane with the lowest VM id, which is the description's first; -1 without any.
func bootstrapped(nodes []cluster.Node) int {
	found := -1
	for i, node := range nodes {
		if node.Role == cluster.RoleControlPlane && (found < 0 || node.VMID < nodes[found].VMID) {
			found = i
		}
	}
	return found
}

var creating = regexp.MustCompile(`proxmox_virtual_environment_vm\.node\["([^"]+)"\]: Creating\.\.\.`)

// begun sorts the nodes by when their VMs were begun, as the platform's output tells.
func begun(nodes []cluster.Node, output string) []cluster.Node {
	place := map[string]int{}
	for i, match := range creating.FindAllStringSubmatch(output, -1) {
		place[match[1]] = i + 1
	}
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b cluster.Node) int { return place[a.Name] - place[b.Name] })
	return sorted
}
