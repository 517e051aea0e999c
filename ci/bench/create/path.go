//go:build linux

package main

import (
	"regexp"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/sandbox/talos"
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

// criticalPath adds the delays up, where each layer's images are pulled when it has installed what runs them. The nodes are in
// the order in which their VMs were begun, which OpenTofu chooses: as soon as one VM is made, the next one begins.
func criticalPath(d profile.Delays, nodes []config.Node) delays {
	return path(d, nodes, func(image string, asked, _ time.Duration) time.Duration { return asked + d.Pull(image) })
}

// aheadPath is the same where a node pulls all its images from the moment that it runs, all at once.
func aheadPath(d profile.Delays, nodes []config.Node) delays {
	return path(d, nodes, func(image string, asked, runs time.Duration) time.Duration { return max(asked, runs+d.Pull(image)) })
}

// path adds the delays up. pulled is when an image is there that pods ask for, on a node that runs since a time.
func path(d profile.Delays, nodes []config.Node, pulled func(image string, asked, runs time.Duration) time.Duration) delays {
	var at delays
	// A login, the list of secrets, and the machine secrets written back.
	at.Secrets = d.InfisicalLogin + 2*d.InfisicalRequest
	var first, last time.Duration // worker that runs: one is enough for a Deployment, Longhorn is on each
	at.Platform, first, last = platformPath(d, at.Secrets, nodes)

	// External Secrets Operator logs in, asks and gives its token back, for each object that it looks after: the store lists,
	// a secret asks for each of its keys, one after the other. A secret waits for its store.
	session := func(requests int) time.Duration {
		return d.InfisicalLogin + time.Duration(requests+1)*d.InfisicalRequest
	}
	store := pulled("external-secrets/external-secrets", at.Platform, first) + d.WebhookServes + session(1)
	at.Engine = store + session(1)
	at.Networking = pulled("metallb/controller", at.Platform, first) + d.WebhookServes
	// What the managers start, and a pod with a volume, come when every manager runs.
	managers := pulled("longhornio/longhorn-manager", at.Platform, last)
	for _, image := range []string{"longhornio/longhorn-instance-manager", "longhornio/longhorn-engine", "longhornio/csi-attacher"} {
		at.Storage = max(at.Storage, pulled(image, managers, last))
	}
	// Flux's images come while the store and then its credentials (user name, password, authority) do; then the blog's image does.
	at.GitOps = max(pulled("fluxcd/source-controller", at.Platform, first), store+session(3)) + d.Pull("blog")
	return at
}

// platformPath is when the layer ends, and when its first and its last worker run.
func platformPath(d profile.Delays, begin time.Duration, nodes []config.Node) (end, firstWorker, lastWorker time.Duration) {
	// A VM is a clone, its configuration, its disk's size, and its start. The next one begins when a hand is free, and is
	// cloned when the storage is.
	hands, storage := make([]time.Duration, vmsAtOnce), make([]time.Duration, clonesAtOnce)
	for _, places := range [][]time.Duration{hands, storage} {
		for i := range places {
			places[i] = begin
		}
	}
	made := make([]time.Duration, len(nodes))
	for i := range nodes {
		hand, place := soonest(hands), soonest(storage)
		cloned := max(hands[hand], storage[place]) + d.VMClone
		made[i] = cloned + 2*d.VMConfig + d.VMStart
		storage[place], hands[hand] = cloned, made[i]
	}
	// Talos is configured as soon as its VM is made. The control plane that runs first is bootstrapped; the others
	// join it, one after the other.
	var workers, controlPlanes []time.Duration // when they run, and have etcd's image
	for i, node := range nodes {
		runs := made[i] + d.Boot + d.Configure
		if node.Role == config.RoleControlPlane {
			controlPlanes = append(controlPlanes, runs+d.Pull(constants.EtcdImage))
		} else {
			workers = append(workers, runs)
		}
	}
	slices.Sort(workers)
	slices.Sort(controlPlanes)
	leader := controlPlanes[0] + d.Bootstrap
	quorum := leader
	for _, runs := range controlPlanes[1:] {
		quorum = max(quorum, runs) + d.EtcdJoin + d.EtcdPromote
	}
	serves := d.Pull(constants.KubernetesAPIServerImage) + d.ControlPlane
	api := leader + serves
	firstWorker, lastWorker = workers[0], workers[len(workers)-1]
	// From the running node to its registration, in both simulators, and from there to Ready, for which flannel's image has to come.
	lastRuns := slices.Max(made) + d.Boot + d.Configure
	nodesReady := max(api, lastRuns+d.Pull(constants.KubeletImage)) + 3*d.Kubelet + d.Pull(talos.FlannelImage)
	// Each API server has to serve, that of the last voter, too.
	return max(quorum+serves, leader+d.VIP, nodesReady), firstWorker, lastWorker
}

// soonest is the index of the earliest time.
func soonest(times []time.Duration) int {
	return slices.Index(times, slices.Min(times))
}

var creating = regexp.MustCompile(`proxmox_virtual_environment_vm\.node\["([^"]+)"\]: Creating\.\.\.`)

// begun sorts the nodes by when their VMs were begun, as the platform's output tells.
func begun(nodes []config.Node, output string) []config.Node {
	place := map[string]int{}
	for i, match := range creating.FindAllStringSubmatch(output, -1) {
		place[match[1]] = i + 1
	}
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b config.Node) int { return place[a.Name] - place[b.Name] })
	return sorted
}
