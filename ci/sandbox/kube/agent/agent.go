//go:build linux

package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"tazlab.net/castle/ci/sandbox/kube/podnet"
	"tazlab.net/castle/ci/sandbox/profile"
)

const (
	podsFolder  = "pods"
	keptFolders = 30
)

// Options configure an Agent.
type Options struct {
	Folder  string // the nodes' disks: volumes, logs
	Pulled  *Images
	Memory  string // a folder in memory, for Secrets and tokens that pods mount; removed by Close
	Network *podnet.Network
	// Images are the programs by image name without tag or digest, "quay.io/metallb/controller"; a name also stands for
	// all images below it.
	Images  map[string]string
	Profile profile.Profile

	Service           netip.Addr // where pods find the API server, port 443
	DNS               netip.Addr
	Domain            string // "cluster.local"
	KubernetesVersion string // "v1.36.4", what nodes report
	OSImage           string // "Talos (v1.13.9)", what nodes report

	// KubeletTLS is what kubelets serve logs with. Nil: they do not.
	KubeletTLS *tls.Config

	// Ends is how a container ends that should and that no program stands for: its exit code, and what it says last. Nil: it succeeds.
	Ends func(context.Context, *corev1.Pod, *corev1.Container) (code int, says string)
	// ServesWebhook tells whether the API server calls a pod. Nil: it calls none.
	ServesWebhook func(*corev1.Pod) bool
	// Changed is called when what Holds answers has changed. Nil: nobody is told.
	Changed func()
	// Began is called when the first known program runs. Nil: nobody is told.
	Began func()
	Log   *slog.Logger
}

// Agent runs the pods of the nodes that are up.
type Agent struct {
	options Options
	context context.Context
	close   context.CancelFunc
	running sync.WaitGroup

	began sync.Once // the first known program

	mu      sync.Mutex
	api     *api
	joined  chan struct{} // closed and replaced with every change of api
	nodes   map[string]*node
	workers map[types.UID]*worker
}

// api is the connection to an API server, while one runs.
type api struct {
	client     kubernetes.Interface
	pods       corelisters.PodLister
	secrets    corelisters.SecretLister
	configMaps corelisters.ConfigMapLister
	synced     []cache.InformerSynced
}

// New makes an agent whose nodes are all down.
func New(options Options) (*Agent, error) {
	if err := os.RemoveAll(options.Memory); err != nil { // of a former life
		return nil, err
	}
	a := &Agent{
		options: options, joined: make(chan struct{}),
		nodes: map[string]*node{}, workers: map[types.UID]*worker{},
	}
	a.context, a.close = context.WithCancel(context.Background())
	return a, nil
}

// Connect follows an API server from now on; the caller starts the factory afterwards. Pods that run already go on.
func (a *Agent) Connect(client kubernetes.Interface, factory informers.SharedInformerFactory) error {
	core := factory.Core().V1()
	next := &api{
		client: client, pods: core.Pods().Lister(), secrets: core.Secrets().Lister(), configMaps: core.ConfigMaps().Lister(),
		synced: []cache.InformerSynced{core.Secrets().Informer().HasSynced, core.ConfigMaps().Informer().HasSynced},
	}
	registration, err := core.Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { a.seen(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { a.seen(object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			a.gone(object.(*corev1.Pod).UID)
		},
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	next.synced = append(next.synced, registration.HasSynced)
	a.setAPI(next)
	return nil
}

// Disconnect forgets the API server, which is about to stop or has stopped. Pods go on; what they report waits.
func (a *Agent) Disconnect() { a.setAPI(nil) }

// Forgotten ends the pods of nodes that are up and that the API server does not know, and tidies up after earlier ones. Call it when the informers of
// Connect have synced.
func (a *Agent) Forgotten() {
	a.mu.Lock()
	connected := a.api
	workers := make([]*worker, 0, len(a.workers))
	for _, w := range a.workers {
		workers = append(workers, w)
	}
	a.mu.Unlock()
	if connected == nil {
		return
	}
	running := map[string]bool{}
	for _, w := range workers {
		running[filepath.Base(w.folder)] = true
		pod := w.object()
		if known, err := connected.pods.Pods(pod.Namespace).Get(pod.Name); err != nil || known.UID != pod.UID {
			a.gone(pod.UID)
		}
	}
	pods, err := connected.pods.List(labels.Everything())
	if err != nil {
		return
	}
	for _, pod := range pods {
		running[folderOf(pod)] = true
	}
	a.tidy(running)
}

// tidy removes the folders of pods that are no more, but for the latest, whose logs may be of interest.
func (a *Agent) tidy(known map[string]bool) {
	entries, err := os.ReadDir(filepath.Join(a.options.Folder, podsFolder))
	if err != nil {
		return
	}
	type old struct {
		name string
		at   time.Time
	}
	var ended []old
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && !known[entry.Name()] {
			ended = append(ended, old{entry.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(ended, func(x, y old) int { return y.at.Compare(x.at) })
	for i := keptFolders; i < len(ended); i++ {
		_ = os.RemoveAll(filepath.Join(a.options.Folder, podsFolder, ended[i].name))
	}
}

// Close ends every process as a power cut would, and returns when all have ended.
func (a *Agent) Close() {
	a.close()
	a.running.Wait()
	if err := os.RemoveAll(a.options.Memory); err != nil {
		a.options.Log.Warn("mounted Secrets cannot be removed", "error", err)
	}
}

func (a *Agent) setAPI(next *api) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.api = next
	close(a.joined)
	a.joined = make(chan struct{})
}

// connected waits for an API server.
func (a *Agent) connected(ctx context.Context) (*api, error) {
	for {
		a.mu.Lock()
		current, joined := a.api, a.joined
		a.mu.Unlock()
		if current != nil && current.ready() {
			return current, nil
		}
		again := make(<-chan time.Time)
		if current != nil {
			again = time.After(20 * time.Millisecond)
		}
		select {
		case <-joined:
		case <-again:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *api) ready() bool {
	for _, synced := range c.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// seen starts a pod that is bound to a running node, or tells its worker what is new.
func (a *Agent) seen(pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := a.workers[pod.UID]; w != nil {
		w.update(pod)
		return
	}
	on := a.nodes[pod.Spec.NodeName]
	if on == nil || !on.registered || on.context.Err() != nil || finished(pod) && pod.DeletionTimestamp == nil {
		return
	}
	w := newWorker(a, on, pod)
	a.workers[pod.UID] = w
	a.running.Go(func() {
		w.run()
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.workers[pod.UID] == w {
			delete(a.workers, pod.UID)
		}
	})
}

func (a *Agent) gone(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := a.workers[uid]; w != nil {
		w.forgotten()
	}
}

// startPods starts what is bound to a node that has just come up.
func (a *Agent) startPods(connected *api, name string) {
	pods, err := connected.pods.List(labels.Everything())
	if err != nil {
		a.options.Log.Error("pods cannot be listed", "error", err)
	}
	for _, pod := range pods {
		if pod.Spec.NodeName == name {
			a.seen(pod)
		}
	}
}

// allocate takes an address that no pod has or lately had.
func (a *Agent) allocate(connected *api) (netip.Addr, error) {
	reported := map[string]bool{}
	pods, err := connected.pods.List(labels.Everything())
	if err != nil {
		return netip.Addr{}, err
	}
	for _, pod := range pods {
		reported[pod.Status.PodIP] = true
	}
	return a.options.Network.Allocate(func(address netip.Addr) bool { return reported[address.String()] })
}

// event tells users of the API what happened to a pod, as a kubelet does. It is lost where no API server answers.
func (a *Agent) event(pod *corev1.Pod, kind, reason, message string) {
	a.mu.Lock()
	connected := a.api
	a.mu.Unlock()
	if connected == nil {
		return
	}
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: pod.Name + ".", Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Type: kind, Reason: reason, Message: message, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: pod.Spec.NodeName},
	}
	go func() {
		ctx, cancel := context.WithTimeout(a.context, 5*time.Second)
		defer cancel()
		_, _ = connected.client.CoreV1().Events(pod.Namespace).Create(ctx, event, metav1.CreateOptions{})
	}()
}
