//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/sandbox/kube/process"
)

const (
	// A kubelet's own numbers: the first restart is immediate, the next waits 10 s, and each further one twice as long.
	firstBackoff = 10 * time.Second
	lastBackoff  = 5 * time.Minute
	// shortestBackoff keeps a small time scale from restarting without a rest.
	shortestBackoff = 250 * time.Millisecond

	// nonroot is who a container runs as that must not be root and names nobody, as the images concerned do.
	nonroot = 65532
)

// container is one container of a pod.
type container struct {
	worker  *worker
	spec    *corev1.Container
	program string // "" where the image has nothing to prove
	init    bool

	// Guarded by the worker's mu.
	state, last    corev1.ContainerState
	ready, started bool
	restarts       int32
	since          time.Time // of the running state
}

// newContainer takes over what a former life of the node reported: its containers ended with its power.
func newContainer(w *worker, spec *corev1.Container, before []corev1.ContainerStatus, init bool) *container {
	c := &container{worker: w, spec: spec, init: init, program: program(w.agent.options.Images, spec.Image)}
	c.state.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	if init || len(w.pod.Spec.InitContainers) > 0 {
		c.state.Waiting.Reason = "PodInitializing"
	}
	for _, old := range before {
		if old.Name == spec.Name && old.ContainerID != "" {
			c.restarts = old.RestartCount + 1
			c.last.Terminated = &corev1.ContainerStateTerminated{ExitCode: 255, Reason: "Unknown", FinishedAt: stamp(time.Now()), ContainerID: old.ContainerID}
		}
	}
	return c
}

// set changes what is reported.
func (c *container) set(change func()) {
	type seen struct {
		running, terminated bool
		ready, started      bool
		restarts            int32
	}
	look := func() seen {
		return seen{c.state.Running != nil, c.state.Terminated != nil, c.ready, c.started, c.restarts}
	}
	c.worker.mu.Lock()
	before := look()
	change()
	after := look()
	c.worker.mu.Unlock()
	c.worker.changed()
	if before == after {
		return
	}
	select {
	case c.worker.events <- struct{}{}:
	default:
	}
}

// sidecar is an init container that runs beside the others.
func (c *container) sidecar() bool {
	return c.init && c.spec.RestartPolicy != nil && *c.spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// pull waits as long as the image takes, once per node. What a registry refuses is asked for again, ever less often; reasons, texts and
// times are a kubelet's (pkg/kubelet/images/image_manager.go of Kubernetes v1.36).
func (c *container) pull(ctx context.Context) error {
	a, pod := c.worker.agent, c.worker.object()
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		if err := c.worker.node.kubelet.runs(ctx); err != nil {
			return err
		}
		call, done := c.worker.node.kubelet.call(ctx)
		did, err := a.options.Pulled.Pull(call, c.worker.node.Name, c.spec.Image, func() {
			a.event(pod, corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", c.spec.Image))
		})
		cut := call.Err() != nil && ctx.Err() == nil
		done()
		if cut { // with its kubelet, which has forgotten that it waited
			backoff = firstBackoff / 2
			continue
		}
		if err == nil && did {
			a.event(pod, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q", c.spec.Image))
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		a.event(pod, corev1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %v", c.spec.Image, err))
		a.event(pod, corev1.EventTypeWarning, "Failed", "Error: ErrImagePull")
		c.set(func() {
			c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %v", c.spec.Image, err)}}
		})
		if err := c.pause(ctx, max(a.options.Profile.Scaled(backoff), shortestBackoff)); err != nil {
			return err
		}
	}
}

// run returns when the container has ended for good.
func (c *container) run(ctx context.Context) {
	if c.program == "" {
		c.pretend(ctx)
		return
	}
	backoff := time.Duration(0)
	for {
		code, err := c.once(ctx)
		if ctx.Err() != nil || !c.again(code, err) {
			return
		}
		scaled := c.worker.agent.options.Profile.Scaled(backoff)
		c.set(func() {
			c.last, c.restarts = c.state, c.restarts+1
			if backoff > 0 {
				c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
					Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %s restarting failed container=%s", backoff, c.spec.Name),
				}}
			}
		})
		if c.pause(ctx, max(scaled, shortestBackoff)) != nil {
			return
		}
		backoff = min(max(2*backoff, firstBackoff), lastBackoff)
	}
}

// again tells whether the container is to be restarted.
func (c *container) again(code int, err error) bool {
	if c.sidecar() {
		return true
	}
	switch c.worker.object().Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0 || err != nil
	default:
		return !c.init || code != 0 || err != nil
	}
}

// pretend is a container that has nothing to prove: one that should end does as Ends says, every other runs.
func (c *container) pretend(ctx context.Context) {
	pod := c.worker.object()
	ends := c.init && !c.sidecar() || slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "Job" })
	now := time.Now()
	if ends {
		code, says := 0, ""
		if c.worker.agent.options.Ends != nil {
			code, says = c.worker.agent.options.Ends(ctx, pod, c.spec)
		}
		c.set(func() {
			c.state = terminated(code, now, c.id())
			c.state.Terminated.Message = says
		})
		return
	}
	c.set(func() { c.state, c.ready, c.started, c.since = runningSince(now), true, true, now })
	<-ctx.Done()
	c.set(func() { c.state, c.ready, c.started = terminated(0, now, c.id()), false, false })
}

// once runs the process from its start to its end.
func (c *container) once(ctx context.Context) (code int, err error) {
	if err := c.worker.node.kubelet.runs(ctx); err != nil {
		return 0, err
	}
	connected, err := c.worker.agent.connected(ctx)
	if err != nil {
		return 0, err
	}
	pod := c.worker.object()
	running, log, err := c.start(connected, pod)
	var missing *missingError
	if errors.As(err, &missing) {
		c.set(func() {
			c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: err.Error()}}
		})
		c.worker.agent.event(pod, corev1.EventTypeWarning, "Failed", "Error: "+err.Error())
		return 0, err
	}
	if err != nil {
		c.set(func() {
			c.state = terminated(128, time.Now(), c.id())
			c.state.Terminated.Reason, c.state.Terminated.Message = "StartError", err.Error()
		})
		c.worker.agent.event(pod, corev1.EventTypeWarning, "Failed", "Error: "+err.Error())
		return 128, err
	}
	defer log.Close()
	now := time.Now()
	c.set(func() { c.state, c.since, c.started, c.ready = runningSince(now), now, false, false })
	c.worker.agent.event(pod, corev1.EventTypeNormal, "Started", "Started container "+c.spec.Name)
	c.worker.agent.begin(c.worker.node)

	probing, stop := context.WithCancel(ctx)
	go c.probe(probing, running)
	select {
	case <-running.Done():
	case <-ctx.Done():
		if c.worker.context.Err() == nil {
			c.worker.agent.event(pod, corev1.EventTypeNormal, "Killing", "Stopping container "+c.spec.Name)
		}
		c.set(func() { c.ready = false })
		c.end(running)
	}
	stop()
	code = running.ExitCode()
	c.set(func() { c.state, c.ready, c.started = terminated(code, now, c.id()), false, false })
	return code, nil
}

// end stops the process: by its grace when the pod is deleted, at once when the node's power is cut.
func (c *container) end(running *process.Process) {
	if c.worker.context.Err() != nil {
		running.Kill()
		return
	}
	stopped := make(chan struct{})
	go func() {
		running.Stop(c.worker.grace())
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-c.worker.context.Done():
		running.Kill()
	}
}

func (c *container) start(connected *api, pod *corev1.Pod) (*process.Process, *process.Log, error) {
	env, err := c.worker.environment(connected, pod, c.spec)
	if err != nil {
		return nil, nil, err
	}
	log, err := process.OpenLog(filepath.Join(c.worker.folder, "logs", c.spec.Name+".log"))
	if err != nil {
		return nil, nil, err
	}
	inside := c.worker.root(pod, c.spec, c.program, env)
	args := env.expandAll(c.spec.Args)
	if len(c.spec.Command) > 1 {
		args = append(env.expandAll(c.spec.Command[1:]), args...)
	}
	dir := c.spec.WorkingDir
	if dir == "" {
		dir = "/"
	}
	running, err := process.Start(process.Command{
		Path: inside.command, Args: args, Env: env.list(), Dir: dir, Log: log,
		Root: inside.folder, Inside: inside.enter, User: user(pod, c.spec),
	})
	if err != nil {
		log.Close()
		return nil, nil, err
	}
	return running, log, nil
}

// user is who the pod or its container wants to be; nil for root.
func user(pod *corev1.Pod, spec *corev1.Container) *syscall.Credential {
	var uid, gid *int64
	var notRoot *bool
	credential := &syscall.Credential{}
	if of := pod.Spec.SecurityContext; of != nil {
		uid, gid, notRoot = of.RunAsUser, of.RunAsGroup, of.RunAsNonRoot
		for _, group := range of.SupplementalGroups {
			credential.Groups = append(credential.Groups, uint32(group))
		}
		if of.FSGroup != nil {
			credential.Groups = append(credential.Groups, uint32(*of.FSGroup))
		}
	}
	if of := spec.SecurityContext; of != nil {
		uid, gid, notRoot = or(of.RunAsUser, uid), or(of.RunAsGroup, gid), or(of.RunAsNonRoot, notRoot)
	}
	switch {
	case uid != nil:
		credential.Uid = uint32(*uid)
	case isTrue(notRoot):
		credential.Uid, credential.Gid = nonroot, nonroot
	case gid == nil:
		return nil
	}
	if gid != nil {
		credential.Gid = uint32(*gid)
	}
	return credential
}

func or[T any](first, second *T) *T {
	if first != nil {
		return first
	}
	return second
}

func (c *container) succeeded() bool {
	c.worker.mu.Lock()
	defer c.worker.mu.Unlock()
	return c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
}

// awaitStarted holds back the containers after a sidecar.
func (c *container) awaitStarted(ctx context.Context) {
	for {
		c.worker.mu.Lock()
		started := c.started
		c.worker.mu.Unlock()
		if started || c.pause(ctx, shortestPeriod) != nil {
			return
		}
	}
}

// id is the container's id in its present life.
func (c *container) id() string {
	return fmt.Sprintf("containerd://%s-%s-%d", c.worker.pod.UID, c.spec.Name, c.restarts)
}

func runningSince(now time.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamp(now)}}
}

func terminated(code int, since time.Time, id string) corev1.ContainerState {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: reason, StartedAt: stamp(since), FinishedAt: stamp(time.Now()), ContainerID: id,
	}}
}

// stamp is a time as the API keeps it.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
