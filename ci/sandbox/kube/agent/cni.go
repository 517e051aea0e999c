//go:build linux

package agent

import (
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// cniFolder is where a container runtime looks for the configuration of a pod network, which a CNI's pod writes from a node's own network.
const cniFolder = "/etc/cni"

// errNoNetwork is what a kubelet says of a pod that needs one before (k8s.io/kubernetes, pkg/kubelet/kubelet.go, NetworkNotReadyErrorMsg).
var errNoNetwork = errors.New("network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized")

// networkPeriod is how often it is looked for; a kubelet is told.
const networkPeriod = 100 * time.Millisecond

// networked waits until a pod has brought the node a network for pods. It is false when the power went first.
func (a *Agent) networked(n *node) bool {
	ticker := time.NewTicker(networkPeriod)
	defer ticker.Stop()
	for !a.hasNetwork(n) {
		select {
		case <-n.context.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

// hasNetwork tells whether the node's pods have a network: where a pod has to bring it, that is one in the node's own network that writes where the
// runtime looks for one, and is ready.
func (a *Agent) hasNetwork(n *node) bool {
	if !n.PodCNI {
		return true
	}
	a.mu.Lock()
	var here []*worker
	for _, w := range a.workers {
		if w.node == n {
			here = append(here, w)
		}
	}
	a.mu.Unlock()
	return slices.ContainsFunc(here, func(w *worker) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.ready.IsZero() && bringsNetwork(w.pod)
	})
}

func bringsNetwork(pod *corev1.Pod) bool {
	return pod.Spec.HostNetwork && slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return volume.HostPath != nil && strings.HasPrefix(volume.HostPath.Path, cniFolder)
	})
}
