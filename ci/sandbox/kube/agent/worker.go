//go:build linux

package agent

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/sandbox/kube/podnet"
	"tazlab.net/castle/ci/sandbox/profile"
)

const (
	// defaultGrace is the API's own default.
	defaultGrace = 30 * time.Second
	// shortestGrace is what a scaled grace never falls below: processes end in real time.
	shortestGrace = 2 * time.Second
	// statusPeriod is how often a kubelet looks whether a status is still as it has reported it, which the controller manager changes where the
	// node was not heard of for 50 s (syncPeriod and needsReconcile in pkg/kubelet/status/status_manager.go of Kubernetes v1.36).
	statusPeriod = 10 * time.Second
	// sandboxPause is the rest after a pod's network or folders could not be made.
	sandboxPause = 2 * time.Second
)

// worker runs one pod on one node.
type worker struct {
	agent   *Agent
	node    *node
	folder  string          // volumes and logs
	context context.Context // ends with the node's power, or when the pod is gone from the API
	cut     context.CancelFunc
	done    chan struct{}
	dirty   chan struct{} // something to report
	events  chan struct{} // something to look at the pod for

	// Set before containers start.
	ip      netip.Addr
	network *podnet.Pod // nil: the node's own
	volumes *volumes

	mu         sync.Mutex
	pod        *corev1.Pod
	ending     chan struct{} // closed when the pod is deleted
	deleted    bool
	containers []*container // init containers first
	started    metav1.Time
	ready      time.Time // since when the pod is ready; zero when it is not
	mounts     []stored  // that a driver has mounted
}

func newWorker(a *Agent, on *node, pod *corev1.Pod) *worker {
	w := &worker{
		agent: a, node: on, pod: pod, started: stamp(time.Now()),
		folder: filepath.Join(a.options.Folder, podsFolder, folderOf(pod)),
		done:   make(chan struct{}), dirty: make(chan struct{}, 1), events: make(chan struct{}, 1), ending: make(chan struct{}),
	}
	w.volumes = &volumes{
		worker: w, folder: filepath.Join(w.folder, "volumes"), memory: filepath.Join(a.options.Memory, folderOf(pod)),
		written: map[string]map[string][]byte{}, tokens: map[string]token{},
	}
	if pod.Status.StartTime != nil {
		w.started = *pod.Status.StartTime
	}
	w.context, w.cut = context.WithCancel(on.context)
	for i := range pod.Spec.InitContainers {
		w.containers = append(w.containers, newContainer(w, &pod.Spec.InitContainers[i], pod.Status.InitContainerStatuses, true))
	}
	for i := range pod.Spec.Containers {
		w.containers = append(w.containers, newContainer(w, &pod.Spec.Containers[i], pod.Status.ContainerStatuses, false))
	}
	if pod.DeletionTimestamp != nil {
		w.deleted = true
		close(w.ending)
	}
	return w
}

func folderOf(pod *corev1.Pod) string { return pod.Namespace + "_" + pod.Name + "_" + string(pod.UID) }

// object is the pod as last seen.
func (w *worker) object() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod
}

func (w *worker) update(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pod = pod
	if pod.DeletionTimestamp != nil && !w.deleted {
		w.deleted = true
		close(w.ending)
	}
	if conditionIsTrue(&pod.Status, corev1.PodReady) != !w.ready.IsZero() {
		time.AfterFunc(w.agent.options.Profile.Scaled(statusPeriod), w.changed)
	}
}

// forgotten ends the pod, of which the API server knows no more, as soon as the node's kubelet sees that.
func (w *worker) forgotten() {
	go func() {
		if w.node.kubelet.runs(w.context) == nil {
			w.cut()
		}
	}()
}

func (w *worker) changed() {
	select {
	case w.dirty <- struct{}{}:
	default:
	}
}

// run is the pod's life on its node.
func (w *worker) run() {
	defer close(w.done)
	defer w.cut()
	defer w.release()
	var reporting sync.WaitGroup
	defer reporting.Wait()
	reports, stop := context.WithCancel(w.context)
	defer stop()

	if pod := w.object(); !finished(pod) {
		reporting.Go(func() { w.report(reports) })
		life, end := context.WithCancel(w.context)
		defer end()
		go func() {
			select {
			case <-w.ending:
				if w.node.kubelet.runs(life) == nil {
					end()
				}
			case <-life.Done():
			}
		}()
		for life.Err() == nil {
			err := w.prepare(life)
			if err == nil {
				w.runContainers(life)
				break
			}
			if life.Err() == nil {
				w.agent.options.Log.Error("a pod cannot run", "pod", pod.Namespace+"/"+pod.Name, "error", err)
				w.agent.event(pod, corev1.EventTypeWarning, "FailedCreatePodSandBox", err.Error())
			}
			select {
			case <-life.Done():
			case <-time.After(sandboxPause):
			}
		}
	}
	select {
	case <-w.ending:
	case <-w.context.Done():
		return
	}
	if w.node.kubelet.runs(w.context) != nil {
		return
	}
	w.unmount()
	stop()
	reporting.Wait()
	w.remove()
}

// prepare makes what all containers share. A missing secret or config map is waited for.
func (w *worker) prepare(ctx context.Context) error {
	if err := w.node.kubelet.runs(ctx); err != nil {
		return err
	}
	if !w.object().Spec.HostNetwork && !w.agent.hasNetwork(w.node) {
		return errNoNetwork
	}
	connected, err := w.agent.connected(ctx)
	if err != nil {
		return err
	}
	pod := w.object()
	if err := w.join(connected, pod); err != nil {
		return err
	}
	w.changed()
	said := ""
	for {
		mounts, err := w.claimed(ctx, connected, pod)
		if err == nil {
			err = w.volumes.sync(ctx, connected, pod)
		}
		if err == nil {
			w.mu.Lock()
			w.mounts = mounts
			w.mu.Unlock()
			break
		}
		if message := err.Error(); message != said {
			said = message
			w.agent.event(pod, corev1.EventTypeWarning, "FailedMount", "MountVolume.SetUp failed for "+message)
			w.waiting("ContainerCreating", "MountVolume.SetUp failed for "+message)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryPeriod):
		}
		if connected, err = w.agent.connected(ctx); err != nil {
			return err
		}
	}
	if said != "" {
		w.waiting("ContainerCreating", "")
	}
	return nil
}

// join gives the pod its address, and its network when it has a real process.
func (w *worker) join(connected *api, pod *corev1.Pod) error {
	if pod.Spec.HostNetwork {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ip = w.node.Address
		return nil
	}
	if !w.ip.IsValid() {
		address, err := w.agent.allocate(connected)
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.ip = address
		w.mu.Unlock()
	}
	for _, c := range w.containers {
		if c.program != "" && w.network == nil {
			network, err := w.agent.options.Network.Pod(w.ip)
			if err != nil {
				return err
			}
			w.network = network
		}
	}
	return nil
}

// runContainers returns when every container has ended for good.
func (w *worker) runContainers(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, c := range w.containers {
		if c.pull(ctx) != nil || c.create(ctx) != nil {
			break
		}
		if !c.init || c.sidecar() {
			running.Go(func() { c.run(ctx) })
			if c.init {
				c.awaitStarted(ctx)
			}
			continue
		}
		c.run(ctx)
		if !c.succeeded() {
			break
		}
	}
	w.refresh(ctx, &running)
}

// refresh brings volumes up to date with what they are made of, while containers run.
func (w *worker) refresh(ctx context.Context, running *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() {
		running.Wait()
		close(ended)
	}()
	next := time.NewTimer(w.agent.nextSync())
	defer next.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-w.events:
			if w.agent.options.Profile.Sleep(ctx, relistPeriod) != nil {
				return
			}
		case <-next.C:
		}
		if w.node.kubelet.runs(ctx) != nil {
			return
		}
		next.Reset(w.agent.nextSync())
		w.agent.mu.Lock()
		connected := w.agent.api
		w.agent.mu.Unlock()
		if connected != nil && connected.ready() {
			// What is gone now stays as it was, as in a kubelet.
			var missing *missingError
			if err := w.volumes.sync(ctx, connected, w.object()); err != nil && !errors.As(err, &missing) && ctx.Err() == nil {
				w.agent.options.Log.Warn("a volume cannot be refreshed", "pod", w.object().Name, "error", err)
			}
		}
	}
}

// remove deletes the object, of which the API server has kept a last version for the node.
func (w *worker) remove() {
	for w.context.Err() == nil {
		connected, err := w.agent.connected(w.context)
		if err != nil {
			return
		}
		pod := w.object()
		now := int64(0)
		ctx, cancel := context.WithTimeout(w.context, callTimeout)
		if !finished(pod) {
			err = w.write(ctx, connected)
		}
		if err == nil {
			err = connected.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
				GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
			})
		}
		gone := w.isGone(ctx, connected, err)
		cancel()
		if err == nil || gone {
			return
		}
		select {
		case <-w.context.Done():
		case <-time.After(retryPeriod):
		}
	}
}

// release gives back what the pod had on its node; its logs stay.
func (w *worker) release() {
	if w.network != nil {
		w.network.Close()
	}
	if w.ip.IsValid() && w.ip != w.node.Address {
		w.agent.options.Network.Release(w.ip)
	}
	_ = os.RemoveAll(w.volumes.memory)
	if w.node.context.Err() == nil {
		_ = os.RemoveAll(filepath.Join(w.folder, "volumes"))
	}
}

// grace is what a process gets between being asked to end and being killed.
func (w *worker) grace() time.Duration {
	pod := w.object()
	grace := defaultGrace
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	}
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	return max(min(grace, shortestGrace), w.agent.options.Profile.Scaled(grace))
}

// holds is how long a webhook refuses after its pod is ready, and how long the pod is not ready after its start.
func (w *worker) holds() (refuses, late time.Duration) {
	p, serves := w.agent.options.Profile, w.agent.options.ServesWebhook
	refuses = p.Scaled(p.Delays.WebhookServes)
	lies, lying := p.Faults.Duration(profile.WebhookLies, 20*time.Second)
	late, isLate := p.Faults.Duration(profile.WebhookLate, 20*time.Second)
	if refuses == 0 && !lying && !isLate || serves == nil || !serves(w.pod) {
		return 0, 0
	}
	return max(refuses, lies), late
}

// Holds tells whether what listens at a pod's address does not answer yet, or no more.
func (a *Agent) Holds(address netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.workers {
		if w.at() == address {
			return w.refuses(time.Now())
		}
	}
	return true
}

func (w *worker) at() netip.Addr {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ip
}

func (w *worker) refuses(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	refuses, _ := w.holds()
	return refuses > 0 && (w.ready.IsZero() || now.Before(w.ready.Add(refuses)))
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
