// Package restart has nodes restarted for what is changed of their VMs or of their machine configuration, one at a time: each is drained before, and the cluster is well
// again before the next one's turn comes. On the Node of Kubernetes it notes what it is about, so that a run that was interrupted is gone
// on with.
package restart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/drain"
	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/platform"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/talos"
)

const (
	// wellLimit is how long the cluster may take to be well before a node is taken down.
	wellLimit = 5 * time.Minute
	// backLimit is how long a node may take to come back.
	backLimit = 10 * time.Minute
)

// rolling is one run of it.
type rolling struct {
	cluster *run.Cluster
	record  *run.Record
	access  *run.Access
	known   state.VMs

	kube     *kube.Client
	typed    kubernetes.Interface
	machines *talos.Access
}

// Nodes restarts those that an apply of the layer platform would leave waiting for that, by applying it to each, and first of all ends what
// an interrupted run has begun. known are the VMs in the layer's state. Where the API does not answer and none is to be restarted, nothing
// is done.
func Nodes(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access, known state.VMs, found platform.Consequences) error {
	wanted := found.Restarted
	r, err := open(cluster, record, access, known)
	if err != nil {
		return err
	}
	list, err := r.nodes(ctx)
	switch {
	case err != nil && len(wanted) == 0:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("create would restart %s, one after the other, and the API at %s has to answer for that; nothing was changed: bring it up, or take the change back and create first: %w", strings.Join(wanted, ", "), access.Kube.Host, kube.Brief(err))
	}
	var begun, others []string
	for _, node := range list.Items {
		switch _, noted := node.Annotations[annotation]; {
		case noted:
			begun = append(begun, node.Name)
		case slices.Contains(wanted, node.Name):
			others = append(others, node.Name)
		}
	}
	// What is no node of Kubernetes runs nothing that a restart would disturb, but may be a member of etcd.
	strange := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return slices.Contains(begun, name) || slices.Contains(others, name) })
	members := slices.DeleteFunc(slices.Clone(strange), func(name string) bool { return known[name].Role != config.RoleControlPlane })
	if len(members) > 1 {
		return fmt.Errorf("create would restart the control planes %s at the same time, which are no nodes of Kubernetes; nothing was changed: change one of them in cluster.yaml, create, then the next", strings.Join(members, ", "))
	}
	for _, name := range strange {
		if err := r.applyOff(ctx, name); err != nil {
			return err
		}
	}
	if len(begun)+len(others) == 0 {
		return nil
	}
	present := cluster.Present(known)
	if r.machines, err = present.Machines(access); err != nil {
		return err
	}
	defer r.machines.Close()
	for _, name := range slices.Concat(begun, others) {
		var change func(context.Context) error
		switch {
		case slices.Contains(found.Offline, name):
			change = func(ctx context.Context) error { return r.applyOff(ctx, name) }
		case slices.Contains(wanted, name):
			change = func(ctx context.Context) error { return r.apply(ctx, name) }
		}
		if err := r.restart(ctx, present, name, change); err != nil {
			return err
		}
	}
	return nil
}

func open(cluster *run.Cluster, record *run.Record, access *run.Access, known state.VMs) (*rolling, error) {
	client, err := access.API()
	if err != nil {
		return nil, err
	}
	typed, err := kubernetes.NewForConfig(client.Config())
	return &rolling{cluster: cluster, record: record, access: access, known: known, kube: client, typed: typed}, err
}

// apply applies the layer platform to one node.
func (r *rolling) apply(ctx context.Context, name string) error {
	return run.Patiently(ctx, func(bool) error {
		return r.cluster.ApplyNode(ctx, r.record, r.access, run.OneNode{Name: name, ID: r.known[name].ID})
	})
}

// applyOff does that while the machine is off. OpenTofu starts it at the end, and where it failed, castle does.
func (r *rolling) applyOff(ctx context.Context, name string) error {
	if _, err := r.cluster.OwnMachines(ctx, r.access); err != nil {
		return err
	}
	machines := r.cluster.Hypervisor(r.access)
	defer machines.Close()
	if err := machines.PowerOff(ctx, name); err != nil {
		return err
	}
	if err := r.apply(ctx, name); err != nil {
		return errors.Join(err, machines.PowerOn(ctx, name))
	}
	return nil
}

// nodes asks once for the Nodes of Kubernetes.
func (r *rolling) nodes(ctx context.Context) (*corev1.NodeList, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.RequestTimeout)
	defer cancel()
	return r.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
}

// restart takes one node down and up. change, which may be nil, is what restarts it; without it the node is restarted as it is, where an
// interrupted run has left it in the middle.
func (r *rolling) restart(ctx context.Context, present *run.Cluster, name string, change func(context.Context) error) error {
	changes := change != nil
	node, err := r.node(ctx, name)
	if err != nil {
		return err
	}
	about, begun := noteOf(node)
	if begun && !changes && !about.Changing {
		return r.release(ctx, name, about) // the change was taken back
	}
	if begun && !changes && node.Status.NodeInfo.BootID != about.Boot {
		return r.comeBack(ctx, name, about)
	}
	off, err := r.off(ctx, name)
	if err != nil {
		return err
	}
	// An interrupted run that has switched it off had waited for that, and without it the cluster is not going to be well.
	if !begun || !off {
		if err := r.wellBefore(ctx, present, name); err != nil {
			return err
		}
	}
	if node, err = r.node(ctx, name); err != nil {
		return err
	}
	switch boot := node.Status.NodeInfo.BootID; {
	case changes:
		about = note{Boot: boot, Cordoned: node.Spec.Unschedulable && (!begun || about.Cordoned)}
	case boot != about.Boot: // an interrupted run had it restarted, and it is back by now
		return r.release(ctx, name, about)
	}
	if err := r.takeDown(ctx, name, about, change); err != nil {
		return err
	}
	return r.comeBack(ctx, name, about)
}

// off tells whether castle has switched off the node's machine, which it does only with those that it makes.
func (r *rolling) off(ctx context.Context, name string) (bool, error) {
	if !r.cluster.Description.MakesMachines() {
		return false, nil
	}
	machines := r.cluster.Hypervisor(r.access)
	defer machines.Close()
	process, err := machines.Process(ctx, name)
	return process == 0, err
}

// comeBack waits for the node, and lets pods come to it again.
func (r *rolling) comeBack(ctx context.Context, name string, about note) error {
	err := r.record.Step(r.cluster.Description.Name, "restart "+name, func(tell func(string)) (bool, error) {
		return true, r.back(ctx, name, about.Boot, tell)
	})
	if err != nil {
		return err
	}
	return r.release(ctx, name, about)
}

// wellBefore waits until nothing else is down: the gate of the layer platform, for the machines that there are.
func (r *rolling) wellBefore(ctx context.Context, present *run.Cluster, name string) error {
	var noted error
	err := gates.Run(ctx, layers.Platform, gates.Env{Kube: r.kube, Cluster: present.Description, Talos: run.Quorum{Machines: r.machines}, Scaled: r.cluster.Scaled},
		gates.Options{Timeout: wellLimit, Events: func(event gates.Event) {
			if event.Condition == "" {
				return
			}
			record := event.Record(layers.Platform)
			record.Cluster = r.cluster.Description.Name
			noted = errors.Join(noted, r.record.Log.Append(record))
		}})
	if err != nil {
		err = fmt.Errorf("before %s is changed, the cluster has to be well: %w", name, err)
	}
	return errors.Join(err, noted)
}

// takeDown drains the node and makes the change that restarts it. Where an interrupted run has made it already, the node is restarted.
func (r *rolling) takeDown(ctx context.Context, name string, about note, change func(context.Context) error) error {
	err := r.record.Step(r.cluster.Description.Name, "drain "+name, func(tell func(string)) (bool, error) {
		if err := r.write(ctx, name, &about, nil); err != nil {
			return true, err
		}
		node, err := drain.Of(r.kube, name)
		if err != nil {
			return true, err
		}
		without, err := r.without(ctx, name)
		if err != nil {
			return true, err
		}
		for _, away := range without.away() {
			tell(away)
		}
		if without.pods {
			return true, node.Cordon(ctx, true) // no pod could go anywhere, and no budget would let it go
		}
		if err := node.Drain(ctx, drain.Options{Deadline: drain.Deadline, KeepOrphans: true}, tell); err != nil {
			return true, fmt.Errorf("%w; make room for them, and create again, or take the change back in cluster.yaml", err)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if _, err := r.cluster.OwnMachines(ctx, r.access); err != nil {
		return err
	}
	if !r.cluster.Description.MakesMachines() {
		if change == nil {
			return r.machines.Reboot(ctx, name)
		}
		about.Changing = true
		if err := r.write(ctx, name, &about, nil); err != nil {
			return err
		}
		return change(ctx)
	}
	machines := r.cluster.Hypervisor(r.access)
	defer machines.Close()
	if change == nil {
		return machines.Reboot(ctx, name)
	}
	before, err := machines.Process(ctx, name)
	if err != nil {
		return err
	}
	about.Changing = true
	if err := r.write(ctx, name, &about, nil); err != nil {
		return err
	}
	if err := change(ctx); err != nil {
		return err
	}
	// OpenTofu restarts nothing; it starts what is off. Of a disk that is new or larger, Talos knows once it starts.
	after, err := machines.Process(ctx, name)
	if err == nil && after == before {
		err = machines.Reboot(ctx, name)
	}
	return err
}

// back waits until the node is Ready after another boot than that.
func (r *rolling) back(ctx context.Context, name, boot string, tell func(string)) error {
	bounded, cancel := context.WithTimeout(ctx, backLimit)
	defer cancel()
	seen := ""
	err := r.kube.Poll(time.Second).Until(bounded, func(ctx context.Context) kube.Answer {
		node, err := r.typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case err != nil:
			return kube.Answer{Seen: kube.Brief(err).Error(), Err: err}
		case node.Status.NodeInfo.BootID == boot:
			return kube.Answer{Seen: "it has not started again"}
		case !kube.NodeReady(node):
			return kube.Answer{Seen: "it has started, and is not Ready"}
		default:
			return kube.Answer{OK: true}
		}
	}, func(text string) {
		seen = text
		tell(text)
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s is not back after %s: %s; look at its console", name, backLimit, seen)
	}
	return err
}

func (r *rolling) node(ctx context.Context, name string) (node *corev1.Node, err error) {
	err = r.kube.Ask(ctx, func(ctx context.Context) error {
		node, err = r.typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return node, err
}
