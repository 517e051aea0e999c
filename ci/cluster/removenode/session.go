package removenode

import (
	"context"
	"time"

	tfjson "github.com/hashicorp/terraform-json"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"tazlab.net/castle/ci/cluster/drain"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/platform"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/talos"
)

// session is what remove-node asks of the run that it is.
type session interface {
	Step(name string, do func(tell func(string)) (did bool, err error)) error
	Failure(ctx context.Context, err error) error
	OwnMachines(ctx context.Context) (state.VMs, error)
	OthersDisksStay(ctx context.Context, known state.VMs, nodes []string) error
	Plan(ctx context.Context, node run.OneNode) (*tfjson.Plan, error)
	ApplyNode(ctx context.Context, node run.OneNode) error
	Proxmox() proxmox
	Machines(known state.VMs) (machines, error)
	API() (api, error)
}

// proxmox has the VMs.
type proxmox interface {
	Own(ctx context.Context, node string) (*hypervisor.VM, error)
	AwaitOff(ctx context.Context, node string, limit time.Duration) (bool, error)
	Unreferenced(ctx context.Context, vms []hypervisor.VM) ([]hypervisor.Leftover, error)
	NotRemoved(ctx context.Context, removed []hypervisor.VM, kept []hypervisor.Leftover) (left []error, unseen string)
	Close()
}

// machines answer by Talos's API.
type machines interface {
	Status(ctx context.Context) []talos.NodeStatus
	StatusOf(ctx context.Context, node string) (talos.NodeStatus, error)
	EtcdQuorum(ctx context.Context) (talos.Quorum, error)
	LeaveEtcd(ctx context.Context, node string) error
	RemoveMember(ctx context.Context, member talos.Member) error
	Reset(ctx context.Context, node string) error
	GiveBack(ctx context.Context, node string, graceful bool) error
	AwaitMaintenance(ctx context.Context, node string, limit time.Duration, tell func(string)) error
	Close()
}

// api is the cluster's.
type api interface {
	Nodes(ctx context.Context) ([]corev1.Node, error)
	// Serves asks the API of one control plane, at its own address.
	Serves(ctx context.Context, address string) error
	Orphans(ctx context.Context, node string) ([]string, error)
	// Replicas are Longhorn's records of the copies of volumes; none where it has none.
	Replicas(ctx context.Context) ([]unstructured.Unstructured, error)
	Cordon(ctx context.Context, node string) error
	Drain(ctx context.Context, node string, limit time.Duration, tell func(string)) error
	// Forget removes a Node; one that is gone is no error.
	Forget(ctx context.Context, node *corev1.Node) error
}

// running is the session of a real run.
type running struct {
	cluster *run.Cluster
	record  *run.Record
	access  *run.Access
}

func (r running) Step(name string, do func(func(string)) (bool, error)) error {
	return r.record.Step(r.cluster.Description.Name, name, do)
}

func (r running) Failure(ctx context.Context, err error) error {
	return r.cluster.PlatformFailure(ctx, r.record, err)
}

func (r running) OwnMachines(ctx context.Context) (state.VMs, error) {
	return r.cluster.OwnMachines(ctx, r.access)
}

func (r running) OthersDisksStay(ctx context.Context, known state.VMs, nodes []string) error {
	return r.cluster.OthersDisksStay(ctx, r.access, known, nodes)
}

func (r running) Plan(ctx context.Context, node run.OneNode) (*tfjson.Plan, error) {
	return platform.Plan(ctx, r.cluster, r.record, r.access, &node)
}

func (r running) ApplyNode(ctx context.Context, node run.OneNode) error {
	return r.cluster.ApplyNode(ctx, r.record, r.access, node)
}

func (r running) Proxmox() proxmox { return r.cluster.Hypervisor(r.access) }

func (r running) Machines(known state.VMs) (machines, error) {
	return r.cluster.Present(known).Machines(r.access)
}

func (r running) API() (api, error) {
	client, err := r.access.API()
	if err != nil {
		return nil, err
	}
	typed, err := kubernetes.NewForConfig(client.Config())
	return connection{client, typed, r.access}, err
}

// connection is a connection to the cluster's API.
type connection struct {
	kube   *kube.Client
	typed  kubernetes.Interface
	access *run.Access
}

func (c connection) Nodes(ctx context.Context) (nodes []corev1.Node, err error) {
	err = c.kube.Ask(ctx, func(ctx context.Context) error {
		list, err := c.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err == nil {
			nodes = list.Items
		}
		return err
	})
	return nodes, err
}

func (c connection) Serves(ctx context.Context, address string) error {
	client, err := kube.Connect("https://"+address, c.access.Kube.CA, c.access.Kube.Cert, c.access.Kube.Key)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, kube.RequestTimeout)
	defer cancel()
	return client.Ready(ctx)
}

func (c connection) Orphans(ctx context.Context, node string) ([]string, error) {
	drained, err := drain.Of(c.kube, node)
	if err != nil {
		return nil, err
	}
	return drained.Orphans(ctx)
}

func (c connection) Replicas(ctx context.Context) (replicas []unstructured.Unstructured, err error) {
	err = c.kube.Ask(ctx, func(ctx context.Context) error {
		list, err := c.kube.Resource(longhornReplicas).List(ctx, metav1.ListOptions{})
		if err == nil {
			replicas = list.Items
		}
		return err
	})
	return replicas, gone(err)
}

func (c connection) Cordon(ctx context.Context, node string) error {
	drained, err := drain.Of(c.kube, node)
	if err != nil {
		return err
	}
	return drained.Cordon(ctx, true)
}

func (c connection) Drain(ctx context.Context, node string, limit time.Duration, tell func(string)) error {
	drained, err := drain.Of(c.kube, node)
	if err != nil {
		return err
	}
	return drained.Drain(ctx, drain.Options{Deadline: limit}, tell)
}

func (c connection) Forget(ctx context.Context, node *corev1.Node) error {
	return c.kube.Ask(ctx, func(ctx context.Context) error {
		return gone(c.typed.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(node.UID))}))
	})
}

// gone makes of "it is not there" no error.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
