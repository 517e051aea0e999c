package gates

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Waiter is a condition without its name.
type Waiter interface {
	Wait(ctx context.Context, report func(lastSeen string)) error
}

// waiterFunc is a Waiter.
type waiterFunc func(ctx context.Context, report func(lastSeen string)) error

func (f waiterFunc) Wait(ctx context.Context, report func(lastSeen string)) error {
	return f(ctx, report)
}

// Test judges one object: what a person should know about it, and whether it is as wished.
type Test func(*unstructured.Unstructured) (seen string, ok bool)

// Object names one object; Namespace is empty for cluster-wide kinds.
type Object struct{ Namespace, Name string }

// The kinds that the gates look at.
var (
	nodes           = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	services        = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	endpointSlices  = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	deployments     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	daemonSets      = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	storageClasses  = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	csiDrivers      = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}
	clusterStores   = schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: "clustersecretstores"}
	externalSecrets = schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: "externalsecrets"}
	addressPools    = schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: "ipaddresspools"}
	advertisements  = schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: "l2advertisements"}
	gitRepositories = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	kustomizations  = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
)

// Objects waits until each of the named objects exists and passes the test.
func (k *Kube) Objects(resource schema.GroupVersionResource, namespace string, test Test, names ...string) Waiter {
	targets := make([]Target, len(names))
	for i, name := range names {
		targets[i] = Target{Resource: resource, Namespace: namespace, Name: name}
	}
	return waiterFunc(func(ctx context.Context, report func(string)) error {
		return k.Follow(ctx, targets, func(view View) (string, bool, error) {
			seen, ok := each(names, view, test)
			return seen, ok, nil
		}, report)
	})
}

// each tests one object per name; view holds at most one of each.
func each(names []string, view View, test Test) (string, bool) {
	var passed int
	var open []string
	for i, name := range names {
		seen, ok := "does not exist yet", false
		if len(view[i]) > 0 {
			seen, ok = test(view[i][0])
		}
		if ok {
			passed++
			continue
		}
		open = append(open, name+": "+seen)
	}
	switch {
	case len(open) == 0 && len(names) == 1:
		seen, _ := test(view[0][0])
		return seen, true
	case len(names) == 1:
		return strings.TrimPrefix(open[0], names[0]+": "), false
	default:
		return tally(passed, len(names), open), len(open) == 0
	}
}

// tally says how many are ready, and what keeps the others.
func tally(passed, all int, open []string) string {
	seen := fmt.Sprintf("%d of %d ready", passed, all)
	if len(open) > 0 {
		seen += "; " + strings.Join(open, "; ")
	}
	return seen
}
