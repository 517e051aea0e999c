//go:build linux

package agent

import (
	"context"
	"sync"
	"time"

	"tazlab.net/castle/ci/sandbox/profile"
)

// restartLasts is how long a kubelet that restarts is away where the fault does not say.
const restartLasts = 10 * time.Second

// kubelet is a node's, as the program that it is: while it is away, containers go on, and nothing is done for them. What becomes of
// them when it is back follows Kubernetes v1.36: a container that was ready stays so (setReadyStateOnKubeletRestart in
// pkg/kubelet/prober/prober_manager.go, by the default of the gate ChangeContainerStatusOnKubeletRestart), the node is not reported as NotReady
// (updateRuntimeUp comes before the first syncNodeStatus in Run of pkg/kubelet/kubelet.go), and a pull that was under way begins anew, since the
// call that asked containerd for it ended.
type kubelet struct {
	mu   sync.Mutex
	away chan struct{} // closed when it is back; nil while it runs
	gone chan struct{} // closed when it goes; nil where nobody has asked
}

// goes is what is closed when the kubelet goes; mu is held.
func (k *kubelet) goes() chan struct{} {
	if k.gone == nil {
		k.gone = make(chan struct{})
	}
	return k.gone
}

// stop has the kubelet away until the function that it gives is called.
func (k *kubelet) stop() (start func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	back := make(chan struct{})
	k.away = back
	close(k.goes())
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.away, k.gone = nil, nil
		close(back)
	}
}

// runs waits until the kubelet runs, or until the context ends and then returns its error.
func (k *kubelet) runs(ctx context.Context) error {
	for {
		k.mu.Lock()
		away := k.away
		k.mu.Unlock()
		if away == nil {
			return ctx.Err()
		}
		select {
		case <-away:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (k *kubelet) isAway() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.away != nil
}

// call is a context that also ends when the kubelet goes, as what it has asked others for does.
func (k *kubelet) call(ctx context.Context) (context.Context, context.CancelFunc) {
	k.mu.Lock()
	gone := k.goes()
	k.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// begin is called for each known program that runs, with its node. The first is what some faults wait for.
func (a *Agent) begin(n *node) {
	a.began.Do(func() {
		a.restart(n)
		if a.options.Began != nil {
			a.options.Began()
		}
	})
}

// restart is the fault kubelet-restarts: the kubelet of the node on which the first known program runs. Talos restarts it whenever its
// specification changes (KubeletServiceController in internal/app/machined/pkg/controllers/k8s/kubelet_service.go of v1.13).
func (a *Agent) restart(n *node) {
	lasts, wanted := a.options.Profile.Faults.Duration(profile.KubeletRestarts, restartLasts)
	if !wanted {
		return
	}
	start := n.kubelet.stop()
	a.options.Log.Info("a kubelet restarts", "node", n.Name, "for", lasts)
	a.running.Go(func() {
		defer start()
		select {
		case <-time.After(lasts):
		case <-n.context.Done():
		}
	})
}
