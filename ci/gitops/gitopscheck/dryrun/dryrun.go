// Package dryrun asks a cluster what it would say to objects, and changes nothing there: each is sent as kustomize-controller
// sends it, by server-side apply under its name and by force, as a dry run. Admission webhooks are called, too.
package dryrun

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// owner is the field manager that kustomize-controller applies as: another one would be told of conflicts that Flux has not.
const owner = "kustomize-controller"

// Cluster is the one that is asked.
type Cluster struct {
	kinds   meta.RESTMapper
	objects dynamic.Interface
}

// Connect connects to the cluster of a kubeconfig's current context.
func Connect(kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s is no kubeconfig that names a cluster: %w", kubeconfig, err)
	}
	return New(config)
}

// New connects to a cluster.
func New(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds)), objects}, nil
}

// DryRun is why the API server would refuse the object, or why that cannot be told yet; neither means that it would take it. An
// error is a cluster that does not answer.
func (c *Cluster) DryRun(ctx context.Context, object *manifests.Object) (refused, later string, err error) {
	kind := object.GroupVersionKind()
	mapping, err := c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return "", fmt.Sprintf("the cluster has no %s yet", kind.GroupKind()), nil
	}
	if err != nil {
		return "", "", err
	}
	var client dynamic.ResourceInterface = c.objects.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		client = c.objects.Resource(mapping.Resource).Namespace(namespace)
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return "", "", err
	}
	force := true
	_, err = client.Patch(ctx, object.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: owner, Force: &force})
	return told(err)
}

// told reads the API server's answer.
func told(err error) (refused, later string, failed error) {
	status, is := errors.AsType[*apierrors.StatusError](err)
	switch {
	case err == nil:
		return "", "", nil
	case !is:
		return "", "", err
	case apierrors.IsNotFound(err):
		return "", "the cluster does not have its namespace yet", nil
	case apierrors.IsUnauthorized(err), apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return "", "", err
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook"):
		return "", "a webhook that has a say in it does not answer: " + status.ErrStatus.Message, nil
	}
	return status.ErrStatus.Message, "", nil
}
