package longhorn

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
)

// Driver is Longhorn's name as a CSI driver.
const Driver = "driver.longhorn.io"

// Names of what Longhorn consists of. Pods bear them as their label "app".
const (
	manager     = "longhorn-manager"
	deployer    = "longhorn-driver-deployer"
	plugin      = "longhorn-csi-plugin"
	attacher    = "csi-attacher"
	provisioner = "csi-provisioner"
	resizer     = "csi-resizer"
	snapshotter = "csi-snapshotter"
)

const (
	again       = time.Second // the rest after a look that failed
	callTimeout = 5 * time.Second
)

// Client is how the simulator reaches the API server.
type Client struct {
	Typed   kubernetes.Interface
	Dynamic dynamic.Interface
}

// Longhorn is one cluster's, installed or not.
type Longhorn struct {
	log *slog.Logger

	mu    sync.Mutex
	world *world // nil while no API server answers
}

// world is what the API server says.
type world struct {
	Client
	log         *slog.Logger
	kick        chan struct{}
	deployed    types.UID // the deployer that has deployed the driver
	pods        corelisters.PodLister
	nodes       corelisters.NodeLister
	configMaps  corelisters.ConfigMapLister
	claims      corelisters.PersistentVolumeClaimLister
	volumes     corelisters.PersistentVolumeLister
	daemonSets  appslisters.DaemonSetLister
	classes     storagelisters.StorageClassLister
	attachments storagelisters.VolumeAttachmentLister
	synced      []cache.InformerSynced
}

// New makes one that knows no cluster yet.
func New(log *slog.Logger) *Longhorn { return &Longhorn{log: log} }

// Connect follows an API server until ctx ends. The caller starts the factory.
func (l *Longhorn) Connect(ctx context.Context, client Client, factory informers.SharedInformerFactory) error {
	core, storage := factory.Core().V1(), factory.Storage().V1()
	w := &world{
		Client: client, log: l.log, kick: make(chan struct{}, 1),
		pods: core.Pods().Lister(), nodes: core.Nodes().Lister(), configMaps: core.ConfigMaps().Lister(),
		claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(),
		daemonSets: factory.Apps().V1().DaemonSets().Lister(),
		classes:    storage.StorageClasses().Lister(), attachments: storage.VolumeAttachments().Lister(),
	}
	changed := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.changed() },
		UpdateFunc: func(any, any) { w.changed() },
		DeleteFunc: func(any) { w.changed() },
	}
	for _, informer := range []cache.SharedIndexInformer{
		core.Pods().Informer(), core.Nodes().Informer(), core.ConfigMaps().Informer(), core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer(),
		factory.Apps().V1().DaemonSets().Informer(), storage.StorageClasses().Informer(), storage.VolumeAttachments().Informer(),
	} {
		if _, err := informer.AddEventHandler(changed); err != nil {
			return err
		}
		w.synced = append(w.synced, informer.HasSynced)
	}
	l.set(w)
	go func() {
		defer l.set(nil)
		if cache.WaitForCacheSync(ctx.Done(), w.synced...) {
			w.follow(ctx)
		}
	}()
	return nil
}

func (l *Longhorn) set(w *world) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.world = w
}

func (l *Longhorn) now() *world {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.world
}

func (w *world) changed() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// follow looks at the cluster whenever something has changed.
func (w *world) follow(ctx context.Context) {
	for {
		rest := make(<-chan time.Time)
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.log.Warn("Longhorn is tried again", "error", err)
			rest = time.After(again)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.kick:
		case <-rest:
		}
	}
}

// look does what is to be done now. What it made shows in its caches a moment later, and is then looked at again.
func (w *world) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*callTimeout)
	defer cancel()
	namespace := w.namespace()
	if namespace == "" {
		return errors.Join(w.provision(ctx, ""), w.attach(ctx, ""))
	}
	return errors.Join(w.manage(ctx, namespace), w.deploy(ctx, namespace), w.provision(ctx, namespace), w.attach(ctx, namespace))
}

// namespace is where Longhorn is installed; "" where it is not.
func (w *world) namespace() string {
	pods, err := w.pods.List(labels.SelectorFromSet(labels.Set{"app": manager}))
	if err != nil || len(pods) == 0 {
		return ""
	}
	return pods[0].Namespace
}

// ready are the pods of a part that are ready.
func (w *world) ready(namespace, app string) (ready []*corev1.Pod) {
	pods, err := w.pods.Pods(namespace).List(labels.SelectorFromSet(labels.Set{"app": app}))
	if err != nil {
		return nil
	}
	for _, pod := range pods {
		if isReady(pod) {
			ready = append(ready, pod)
		}
	}
	return ready
}

func isReady(pod *corev1.Pod) bool {
	for _, is := range pod.Status.Conditions {
		if is.Type == corev1.PodReady {
			return is.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// there is what a Create came to where somebody else may have been faster.
func there(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// gone is what a Delete came to where somebody else may have been faster.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
