// Package teardown empties a cluster that is about to be destroyed of what would outlive it, or would keep its layers from being removed: what
// Flux has applied, load balancers, and volumes. Whether anything still goes is seen by counting: a part of the cluster that is dead holds what it
// should let go of for ever, and no timeout of a tool's tells that from work that takes long.
package teardown

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"tazlab.net/castle/ci/cluster/kube"
)

// every is how often it is looked whether something is gone.
const every = time.Second

// Cluster is one that is about to be destroyed.
type Cluster struct {
	client   *kube.Client
	typed    kubernetes.Interface
	metadata metadata.Interface
	kinds    discovery.DiscoveryInterface
}

// Of gives the cluster behind a connection; nothing is asked yet.
func Of(client *kube.Client) (*Cluster, error) {
	config := client.Config()
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	config.Timeout = kube.RequestTimeout // a question for all kinds takes no context
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	return &Cluster{client: client, typed: typed, metadata: objects, kinds: kinds}, err
}

// condemned is an object that was told to go.
type condemned struct {
	kind      schema.GroupVersionResource
	namespace string
	name      string
	uid       types.UID // another object of its name, made since, is another object
}

func (o condemned) String() string {
	return o.kind.Resource + " " + strings.TrimPrefix(o.namespace+"/"+o.name, "/")
}

// remove deletes objects in the background and waits until they are gone. Those of a kind that is not defined are.
func (c *Cluster) remove(ctx context.Context, objects []condemned, tell func(string)) error {
	background := metav1.DeletePropagationBackground
	for _, object := range objects {
		err := c.client.Ask(ctx, func(ctx context.Context) error {
			return c.metadata.Resource(object.kind).Namespace(object.namespace).Delete(ctx, object.name,
				metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(object.uid)), PropagationPolicy: &background})
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete %s: %w", object, kube.Brief(err))
		}
	}
	return c.await(ctx, objects, tell)
}

// await waits until objects are gone.
func (c *Cluster) await(ctx context.Context, objects []condemned, tell func(string)) error {
	err := c.client.Poll(every).Until(ctx, func(ctx context.Context) kube.Answer {
		var left []string
		for _, object := range objects {
			there, err := c.metadata.Resource(object.kind).Namespace(object.namespace).Get(ctx, object.name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err), err == nil && there.UID != object.uid:
			case err != nil:
				return kube.Answer{Seen: kube.Brief(err).Error(), Err: err}
			default:
				left = append(left, object.String())
			}
		}
		return kube.Answer{Seen: strings.Join(shortened(left), ", "), OK: len(left) == 0}
	}, tell)
	if errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

// list gives all objects of a kind, in all namespaces; none where the kind is not defined.
func (c *Cluster) list(ctx context.Context, kind schema.GroupVersionResource) (found []condemned, err error) {
	var list *metav1.PartialObjectMetadataList
	err = c.client.Ask(ctx, func(ctx context.Context) (err error) {
		list, err = c.metadata.Resource(kind).List(ctx, metav1.ListOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Resource, kube.Brief(err))
	}
	for _, item := range list.Items {
		found = append(found, condemned{kind, item.Namespace, item.Name, item.UID})
	}
	return found, nil
}

// named is how many objects a text names before it only counts them.
const named = 5

func shortened(list []string) []string {
	if len(list) <= named {
		return list
	}
	return append(list[:named:named], fmt.Sprintf("and %d more", len(list)-named))
}
