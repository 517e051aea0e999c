//go:build linux

package agent

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// report writes the pod's status whenever it changes.
func (w *worker) report(ctx context.Context) {
	w.changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.dirty:
		}
		if w.node.kubelet.runs(ctx) != nil {
			return
		}
		connected, err := w.agent.connected(ctx)
		if err != nil {
			return
		}
		bounded, cancel := context.WithTimeout(ctx, callTimeout)
		err = w.write(bounded, connected)
		gone := w.isGone(bounded, connected, err)
		cancel()
		switch {
		case err == nil:
		case gone:
			w.cut()
			return
		default:
			select {
			case <-ctx.Done():
				return
			case <-time.After(retryPeriod):
			}
			w.changed()
		}
	}
}

func (w *worker) write(ctx context.Context, connected *api) error {
	pod := w.object()
	status := w.status()
	if equality.Semantic.DeepEqual(status, &pod.Status) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	written, err := connected.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pod.ResourceVersion == pod.ResourceVersion {
		w.pod = written
	}
	return nil
}

// isGone reports whether an answer means that the object of this uid is there no more. A conflict alone does not: the API server also
// answers so where others were faster five times in a row (maxRetryWhenPatchConflicts of k8s.io/apiserver's patch handler).
func (w *worker) isGone(ctx context.Context, connected *api, err error) bool {
	if !apierrors.IsConflict(err) {
		return apierrors.IsNotFound(err)
	}
	pod := w.object()
	current, err := connected.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && current.UID != pod.UID
}

// waiting says why the containers do not start.
func (w *worker) waiting(reason, message string) {
	w.mu.Lock()
	for _, c := range w.containers {
		if c.state.Waiting != nil {
			c.state.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
		}
	}
	w.mu.Unlock()
	w.changed()
}

// status is what a kubelet would report now.
func (w *worker) status() *corev1.PodStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	status := w.pod.Status.DeepCopy()
	status.ObservedGeneration = w.pod.Generation
	status.StartTime = &w.started
	status.HostIP, status.HostIPs = w.node.Address.String(), []corev1.HostIP{{IP: w.node.Address.String()}}
	if w.ip.IsValid() {
		status.PodIP, status.PodIPs = w.ip.String(), []corev1.PodIP{{IP: w.ip.String()}}
	}
	now := time.Now()
	refuses, late := w.holds()
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
	sums := summary{restart: w.pod.Spec.RestartPolicy}
	for _, c := range w.containers {
		one := c.status()
		if until := c.since.Add(late); one.Ready && late > 0 && now.Before(until) {
			one.Ready = false
			time.AfterFunc(time.Until(until), w.changed)
		}
		if c.init {
			status.InitContainerStatuses = append(status.InitContainerStatuses, one)
		} else {
			status.ContainerStatuses = append(status.ContainerStatuses, one)
		}
		sums.add(c, one)
	}
	status.Phase = sums.phase()
	ready := sums.ready && status.Phase == corev1.PodRunning && !w.deleted
	setCondition(status, corev1.PodReadyToStartContainers, w.ip.IsValid(), "", w.pod.Generation)
	setCondition(status, corev1.PodInitialized, sums.initialized, "ContainersNotInitialized", w.pod.Generation)
	setCondition(status, corev1.ContainersReady, ready, "ContainersNotReady", w.pod.Generation)
	for _, gate := range w.pod.Spec.ReadinessGates {
		ready = ready && conditionIsTrue(status, gate.ConditionType)
	}
	setCondition(status, corev1.PodReady, ready, "ContainersNotReady", w.pod.Generation)
	switch {
	case !ready:
		w.ready = time.Time{}
	case w.ready.IsZero():
		w.ready = now
		if refuses > 0 && w.agent.options.Changed != nil {
			time.AfterFunc(refuses, w.agent.options.Changed)
		}
	}
	return status
}

// status is one container's; the worker's mu is held.
func (c *container) status() corev1.ContainerStatus {
	started := c.started
	one := corev1.ContainerStatus{
		Name: c.spec.Name, State: *c.state.DeepCopy(), LastTerminationState: *c.last.DeepCopy(), RestartCount: c.restarts,
		Image: c.spec.Image, Ready: c.ready, Started: &started,
	}
	if c.init && !c.sidecar() {
		one.Ready = c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
	}
	if c.state.Waiting == nil {
		one.ImageID, one.ContainerID = c.spec.Image, c.id()
	}
	return one
}

// summary derives a pod's phase from its containers.
type summary struct {
	restart                                  corev1.RestartPolicy
	waiting, failed, running, ended, initBad int
	notInitialized, notReady                 int
	initialized, ready                       bool
}

func (s *summary) add(c *container, one corev1.ContainerStatus) {
	defer func() { s.initialized, s.ready = s.notInitialized == 0, s.notReady == 0 }()
	if c.init {
		if c.sidecar() {
			if !c.started {
				s.notInitialized++
			}
			return
		}
		if !one.Ready {
			s.notInitialized++
		}
		if t := one.State.Terminated; t != nil && t.ExitCode != 0 && s.restart == corev1.RestartPolicyNever {
			s.initBad++
		}
		return
	}
	if !one.Ready {
		s.notReady++
	}
	switch {
	case one.State.Running != nil:
		s.running++
	case one.State.Terminated != nil:
		s.ended++
		if one.State.Terminated.ExitCode != 0 {
			s.failed++
		}
	case one.LastTerminationState.Terminated != nil && one.State.Waiting.Reason == "CrashLoopBackOff":
		s.running++ // between two lives
	default:
		s.waiting++
	}
}

func (s *summary) phase() corev1.PodPhase {
	final := s.restart == corev1.RestartPolicyNever || s.restart == corev1.RestartPolicyOnFailure && s.failed == 0
	switch {
	case s.initBad > 0:
		return corev1.PodFailed
	case s.notInitialized > 0 || s.waiting > 0 && s.running == 0 && s.ended == 0:
		return corev1.PodPending
	case s.running > 0 || s.waiting > 0 || !final:
		return corev1.PodRunning
	case s.failed > 0:
		return corev1.PodFailed
	default:
		return corev1.PodSucceeded
	}
}

func setCondition(status *corev1.PodStatus, of corev1.PodConditionType, is bool, reason string, generation int64) {
	next := corev1.PodCondition{Type: of, Status: corev1.ConditionTrue, LastTransitionTime: stamp(time.Now()), ObservedGeneration: generation}
	if !is {
		next.Status, next.Reason = corev1.ConditionFalse, reason
	}
	for i, old := range status.Conditions {
		if old.Type == of {
			if old.Status == next.Status {
				next.LastTransitionTime = old.LastTransitionTime
			}
			status.Conditions[i] = next
			return
		}
	}
	status.Conditions = append(status.Conditions, next)
}

func conditionIsTrue(status *corev1.PodStatus, of corev1.PodConditionType) bool {
	for _, condition := range status.Conditions {
		if condition.Type == of {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
