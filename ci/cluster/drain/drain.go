// Package drain takes a node's pods off it, through the Eviction API, which breaks no PodDisruptionBudget. kubectl's own package for
// that, k8s.io/kubectl/pkg/drain, brings kubectl's commands along, which would make castle-cluster larger by half, and does not tell which budget
// holds a pod.
package drain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"tazlab.net/castle/ci/cluster/kube"
)

// Deadline is how long pods get to go where nobody says anything else.
const Deadline = 10 * time.Minute

// every is how often pods that are held are asked for again.
const every = time.Second

// Node is a node of a cluster.
type Node struct {
	name   string
	client *kube.Client
	typed  kubernetes.Interface
}

// Of gives a node by its name; nothing is asked yet.
func Of(client *kube.Client, name string) (*Node, error) {
	typed, err := kubernetes.NewForConfig(client.Config())
	return &Node{name: name, client: client, typed: typed}, err
}

// Cordon keeps new pods off the node, or lets them come again.
func (n *Node) Cordon(ctx context.Context, cordoned bool) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"unschedulable": cordoned}})
	if err != nil {
		return err
	}
	return n.client.Ask(ctx, func(ctx context.Context) error {
		_, err := n.typed.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// Orphans are the pods on the node that nobody makes again elsewhere, "namespace/name".
func (n *Node) Orphans(ctx context.Context) ([]string, error) {
	pods, err := n.leaving(ctx)
	var orphans []string
	for _, pod := range pods {
		if orphan(&pod) {
			orphans = append(orphans, nameOf(&pod))
		}
	}
	return orphans, err
}

// Options are how far a drain goes.
type Options struct {
	Deadline time.Duration
	// KeepOrphans leaves pods where they are that nobody makes again: the node comes back, and they with it.
	KeepOrphans bool
}

// Drain cordons the node and evicts its pods, and returns when they are gone. Those of DaemonSets and of the kubelet itself stay. At the
// deadline it gives up: the error names each pod that is left, and what holds it. report is told the same meanwhile.
func (n *Node) Drain(ctx context.Context, options Options, report func(string)) error {
	if err := n.Cordon(ctx, true); err != nil {
		return fmt.Errorf("cordon %s: %w", n.name, err)
	}
	bounded, cancel := context.WithTimeout(ctx, options.Deadline)
	defer cancel()
	left := ""
	err := n.client.Poll(every).Until(bounded, func(ctx context.Context) kube.Answer {
		seen, err := n.evict(ctx, options.KeepOrphans)
		if err != nil {
			return kube.Answer{Seen: kube.Brief(err).Error(), Err: err}
		}
		left = strings.Join(seen, "; ")
		return kube.Answer{Seen: left, OK: len(seen) == 0}
	}, report)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s still has pods after %s, and stays cordoned: %s", n.name, options.Deadline, left)
	}
	return err
}

// evict asks once for each pod to leave, and tells of each that is left.
func (n *Node) evict(ctx context.Context, keepOrphans bool) (left []string, err error) {
	pods, err := n.leaving(ctx)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if keepOrphans && orphan(&pod) {
			continue
		}
		if pod.DeletionTimestamp != nil {
			left = append(left, nameOf(&pod)+" is ending")
			continue
		}
		err := n.typed.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
		})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it is gone, or another one has its name
		case err != nil:
			left = append(left, nameOf(&pod)+" is held: "+held(err))
		default:
			left = append(left, nameOf(&pod)+" was asked to end")
		}
	}
	return left, ctx.Err()
}

// held is why the API refuses an eviction. Which budget it is, is in the details of the answer.
func held(err error) string {
	text := kube.Brief(err).Error()
	if status, is := errors.AsType[*apierrors.StatusError](err); is && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Type == policyv1.DisruptionBudgetCause {
				text += " " + cause.Message
			}
		}
	}
	return text
}

// leaving are the pods that a drain takes off the node, in the order of their names.
func (n *Node) leaving(ctx context.Context) ([]corev1.Pod, error) {
	var list *corev1.PodList
	err := n.client.Ask(ctx, func(ctx context.Context) (err error) {
		list, err = n.typed.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", n.name).String()})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods on %s: %w", n.name, err)
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		owner := metav1.GetControllerOf(&pod)
		_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
		return static || owner != nil && owner.Kind == "DaemonSet" && !finished(&pod)
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(nameOf(&a), nameOf(&b)) })
	return pods, nil
}

func orphan(pod *corev1.Pod) bool { return metav1.GetControllerOf(pod) == nil && !finished(pod) }

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func nameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
