//go:build linux

package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/netip"
	"runtime"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// A kubelet's own numbers: it renews its lease of 40 s every 10 s, and reports what has not changed every 5 min.
	leaseSeconds = 40
	leasePeriod  = 10 * time.Second
	reportPeriod = 5 * time.Minute

	// retryPeriod is the rest after a call that failed.
	retryPeriod = 250 * time.Millisecond
	// callTimeout bounds one call of the API server.
	callTimeout = 5 * time.Second
)

// Node is a machine that runs pods.
type Node struct {
	Name    string
	Address netip.Addr
	PodCNI  bool     // it is Ready only once a pod on it has brought a network for pods, as on every machine of Talos
	Shared  []string // folders, whose mounts its pods and the node may share
	// Labels and Taints are those that Talos gives it; a taint is "value:effect" by its key.
	Labels, Taints map[string]string
	Cores          int
	Memory         int // MiB
}

type node struct {
	Node                       // shared folders, labels and taints are guarded by the agent's mu
	kubelet    kubelet         // the program
	boot       string          // differs with each power on, as /proc/sys/kernel/random/boot_id does
	context    context.Context // ends with the power
	cut        context.CancelFunc
	registered bool // guarded by the agent's mu
}

// NodeUp powers a node on: its kubelet registers it, and starts what is bound to it. A node that is up stays so, and gets its labels and
// taints anew.
func (a *Agent) NodeUp(n Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.context.Err() != nil {
		return
	}
	if up := a.nodes[n.Name]; up != nil {
		up.Shared = n.Shared
		if !maps.Equal(up.Labels, n.Labels) || !maps.Equal(up.Taints, n.Taints) {
			up.Labels, up.Taints = n.Labels, n.Taints
			a.running.Go(func() { a.mark(up) })
		}
		return
	}
	up := &node{Node: n, boot: rand.Text()}
	up.context, up.cut = context.WithCancel(a.context)
	a.nodes[n.Name] = up
	a.running.Go(func() { a.keepNode(up) })
}

// NodeDown cuts a node's power: its processes are gone when it returns. An API server that answers is told that the
// node is not ready, which its controller manager would find out 50 s later.
func (a *Agent) NodeDown(name string) {
	a.mu.Lock()
	down := a.nodes[name]
	delete(a.nodes, name)
	var ending []*worker
	for _, w := range a.workers {
		if w.node == down && down != nil {
			ending = append(ending, w)
		}
	}
	connected := a.api
	a.mu.Unlock()
	if down == nil {
		return
	}
	down.cut()
	for _, w := range ending {
		<-w.done
	}
	a.mu.Lock()
	for uid, w := range a.workers {
		if w.node == down {
			delete(a.workers, uid)
		}
	}
	a.mu.Unlock()
	if connected != nil {
		a.running.Go(func() { a.lost(connected, name) })
	}
}

// keepNode registers the node, makes it ready, and keeps its lease.
func (a *Agent) keepNode(n *node) {
	ctx := n.context
	if a.options.Profile.Sleep(ctx, a.options.Profile.Delays.Kubelet) != nil {
		return
	}
	if !a.persist(ctx, "register", n, func(ctx context.Context, c *api) error { return a.register(ctx, c, n) }) {
		return
	}
	if !a.mark(n) {
		return
	}
	a.serveLogs(n)
	// The lease comes before Ready: without one, the controller manager judges by the status alone.
	if !a.persist(ctx, "renew the lease of", n, func(ctx context.Context, c *api) error { return renew(ctx, c, n.Name) }) {
		return
	}
	if a.options.Profile.Sleep(ctx, a.options.Profile.Delays.Kubelet) != nil {
		return
	}
	if n.PodCNI && !(a.takePods(n) && a.networked(n)) {
		return
	}
	if !a.persist(ctx, "report", n, func(ctx context.Context, c *api) error { return a.reportNode(ctx, c, n, true) }) {
		return
	}
	if !n.PodCNI && !a.takePods(n) {
		return
	}
	ticker := time.NewTicker(leasePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if n.kubelet.runs(ctx) != nil {
			return
		}
		// Reported again with every lease: while no API server answered, the node was given up.
		a.persist(ctx, "renew the lease of", n, func(ctx context.Context, c *api) error {
			if err := renew(ctx, c, n.Name); err != nil {
				return err
			}
			return a.reportNode(ctx, c, n, true)
		})
	}
}

// takePods starts what is bound to the node from now on. It is false when the power went first.
func (a *Agent) takePods(n *node) bool {
	a.mu.Lock()
	n.registered = true
	a.mu.Unlock()
	connected, err := a.connected(n.context)
	if err != nil {
		return false
	}
	a.startPods(connected, n.Name)
	return true
}

// persist repeats a call until it succeeds; false when the power went first.
func (a *Agent) persist(ctx context.Context, what string, n *node, call func(context.Context, *api) error) bool {
	for {
		connected, err := a.connected(ctx)
		if err != nil {
			return false
		}
		bounded, cancel := context.WithTimeout(ctx, callTimeout)
		err = call(bounded, connected)
		cancel()
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			a.options.Log.Warn("a kubelet's call failed", "call", what+" "+n.Name, "error", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(retryPeriod):
		}
	}
}

// register makes the Node object, or gives the one of a former life its labels again; its taints are the business of mark.
func (a *Agent) register(ctx context.Context, c *api, n *node) error {
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Annotations: map[string]string{attachControlled: "true"}, Labels: map[string]string{
		corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH,
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": runtime.GOARCH,
	}}}
	a.markObject(object, n)
	_, err := c.client.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": object.Labels}})
		if err != nil {
			return err
		}
		if _, err := c.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	return a.reportNode(ctx, c, n, false)
}

func (a *Agent) reportNode(ctx context.Context, c *api, n *node, ready bool) error {
	current, err := c.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		if current, err = c.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return nil // deleted on purpose: a kubelet registers only when it starts
		}
	}
	if err != nil {
		return err
	}
	if ready && !stale(current) {
		return nil
	}
	status := corev1.NodeStatus{
		Capacity: capacity(n.Node),
		Conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
			condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
			condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
			condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
		},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: n.Address.String()}, {Type: corev1.NodeHostName, Address: n.Name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: kubeletPort}},
		NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion: a.options.KubernetesVersion, OSImage: a.options.OSImage, OperatingSystem: "linux",
			Architecture: runtime.GOARCH, ContainerRuntimeVersion: "containerd://2.1.4", KernelVersion: "6.12.0-talos",
			MachineID: n.Name, SystemUUID: n.Name, BootID: n.boot,
		},
	}
	status.Allocatable = status.Capacity
	if !ready {
		status.Conditions[3] = condition(corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", "container runtime network not ready")
	}
	for i := range status.Conditions {
		keepTransition(&status.Conditions[i], current.Status.Conditions)
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// stale tells whether a node's status is not Ready, or so old that a kubelet reports it again.
func stale(n *corev1.Node) bool {
	for _, is := range n.Status.Conditions {
		if is.Type == corev1.NodeReady {
			return is.Status != corev1.ConditionTrue || time.Since(is.LastHeartbeatTime.Time) > reportPeriod
		}
	}
	return true
}

// lost marks a node whose power was cut.
func (a *Agent) lost(c *api, name string) {
	ctx, cancel := context.WithTimeout(a.context, callTimeout)
	defer cancel()
	current, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return
	}
	const reason, message = "NodeStatusUnknown", "Kubelet stopped posting node status."
	conditions := current.Status.Conditions
	for i := range conditions {
		unknown := condition(conditions[i].Type, corev1.ConditionUnknown, reason, message)
		unknown.LastHeartbeatTime = conditions[i].LastHeartbeatTime
		keepTransition(&unknown, conditions)
		conditions[i] = unknown
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return
	}
	if _, err := c.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		a.options.Log.Warn("a lost node could not be marked", "node", name, "error", err)
	}
}

func renew(ctx context.Context, c *api, name string) error {
	leases := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now, seconds := metav1.NowMicro(), int32(leaseSeconds)
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

func capacity(n Node) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse(strconv.Itoa(max(n.Cores, 1))),
		corev1.ResourceMemory:           resource.MustParse(strconv.Itoa(max(n.Memory, 512)) + "Mi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("40Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
}

func condition(of corev1.NodeConditionType, is corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
	now := metav1.Now()
	return corev1.NodeCondition{Type: of, Status: is, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
}

func keepTransition(next *corev1.NodeCondition, before []corev1.NodeCondition) {
	for _, old := range before {
		if old.Type == next.Type && old.Status == next.Status {
			next.LastTransitionTime = old.LastTransitionTime
		}
	}
}
