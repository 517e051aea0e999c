//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"tazlab.net/castle/ci/base/copytree"
	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/terragrunt"
)

// order is that of the record's script: one layer after the other, only the last two beside each other.
var order = [][]string{{"1-secrets"}, {"2-platform"}, {"3-engine"}, {"4-networking"}, {"5-storage", "6-gitops"}}

const (
	// pollEvery is the script's pause between two looks, and before it tried a layer again.
	pollEvery = 5 * time.Second
	// patience is how long it looked, and how often it tried.
	patience = 10 * time.Minute
	attempts = 20
)

// script takes the arguments of "terragrunt run --all" and runs one unit after the other instead.
func (p *player) script(ctx context.Context, args []string) error {
	var kept, only []string
	report := ""
	for _, arg := range args {
		if name, is := strings.CutPrefix(arg, "--report-file="); is {
			report = name
		} else if unit, is := strings.CutPrefix(arg, "--filter=./"); is {
			only = append(only, unit)
		} else if arg != "--all" && !strings.HasPrefix(arg, "--report-format=") {
			kept = append(kept, arg)
		}
	}
	var mutex sync.Mutex
	var rows terragrunt.Report
	var failed error
	steps := slices.Clone(order)
	if slices.Contains(kept, "destroy") {
		slices.Reverse(steps)
	}
	for _, beside := range steps {
		var wait sync.WaitGroup
		for _, unit := range beside {
			if len(only) > 0 && !slices.Contains(only, unit) {
				continue
			}
			wait.Go(func() {
				row := terragrunt.Unit{Name: unit, Started: time.Now(), Result: terragrunt.Succeeded}
				err := p.unit(ctx, unit, kept)
				row.Ended = time.Now()
				mutex.Lock()
				defer mutex.Unlock()
				if err != nil {
					row.Result, row.Reason, row.Cause = terragrunt.FailedRun, "run error", err.Error()
					failed = errors.Join(failed, exitCode(1))
				}
				rows = append(rows, row)
			})
		}
		wait.Wait()
		if failed != nil {
			break
		}
	}
	data, err := json.Marshal(rows)
	if err == nil && report != "" {
		err = os.WriteFile(report, data, 0o600)
	}
	return errors.Join(err, failed)
}

// unit applies one unit, again where a webhook was not there yet: the script had not called it through.
func (p *player) unit(ctx context.Context, unit string, args []string) error {
	for attempt := 1; ; attempt++ {
		out, err := p.real(unit, unit, args)
		if err == nil || attempt == attempts || !strings.Contains(out, "failed calling webhook") {
			return err
		}
		p.note(unit, "refused by a webhook, tried again")
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look is a single look at the cluster, as a script does it with kubectl.
type look struct {
	group, version, resource string
	namespace, name          string // name "": all
	labels                   string
	holds                    func(object *unstructured.Unstructured) bool
}

// storesReady are looked at before each layer that asks a store for secrets.
var storesReady = look{"external-secrets.io", "v1", "clustersecretstores", "", "", "", condition("Ready")}

// looks are what the gates wait for, without the conditions that a look cannot tell: no webhook is called through, no address is
// asked of the load balancer, the virtual IP is looked at once. That is less than castle's gates wait for.
var looks = map[string][]look{
	layers.Platform:  {{"", "v1", "nodes", "", "", "", condition("Ready")}},
	"engine-webhook": {endpoints("external-secrets", "external-secrets-webhook")},
	layers.Engine: {
		storesReady,
		{"external-secrets.io", "v1", "externalsecrets", "external-secrets", "castle-proof", "", condition("Ready")},
	},
	"engine-store":       {storesReady},
	"networking-webhook": {endpoints("metallb-system", "metallb-webhook-service")},
	layers.Networking:    {{"metallb.io", "v1beta1", "ipaddresspools", "metallb-system", "castle", "", present}},
	layers.Storage: {
		{"storage.k8s.io", "v1", "storageclasses", "", "", "", present},
		{"apps", "v1", "daemonsets", "longhorn-system", "longhorn-manager", "", onAllNodes},
	},
	"gitops-tenancy": {{"", "v1", "namespaces", "", "", "", present}}, // a new cluster has nothing that could not go on
	"gitops-store":   {storesReady},
	"gitops-secrets": {
		{"external-secrets.io", "v1", "externalsecrets", "flux-system", "", "", condition("Ready")},
	},
	"gitops-notifications": {
		{"apps", "v1", "deployments", "flux-system", "notification-controller", "", condition("Available")},
	},
	layers.GitOps: {
		{"kustomize.toolkit.fluxcd.io", "v1", "kustomizations", "flux-system", "flux-system", "", condition("Ready")},
		{"kustomize.toolkit.fluxcd.io", "v1", "kustomizations", "", "", "", condition("Ready")},
	},
}

// poll looks at a gate every few seconds.
func poll(ctx context.Context, gate string) error {
	list, known := looks[gate]
	if !known {
		return fmt.Errorf("the script has no look for the gate %s", gate)
	}
	api, err := kube.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(api.Config())
	if err != nil {
		return err
	}
	least := 1
	if gate == layers.Platform {
		description, err := description.Handed(os.Getenv(description.Variable))
		if err != nil {
			return err
		}
		least = len(description.Nodes)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		met := true
		for _, l := range list {
			met = met && l.met(ctx, client, least)
		}
		if met {
			return nil
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return fmt.Errorf("gate %s: not open after %s", gate, patience)
		}
	}
}

// met says whether at least so many objects are there and all are as they should be. An error is no different from an object
// that is not ready yet.
func (l look) met(ctx context.Context, client dynamic.Interface, least int) bool {
	ctx, cancel := context.WithTimeout(ctx, pollEvery)
	defer cancel()
	options := metav1.ListOptions{LabelSelector: l.labels}
	if l.name != "" {
		options.FieldSelector = "metadata.name=" + l.name
	}
	resource := schema.GroupVersionResource{Group: l.group, Version: l.version, Resource: l.resource}
	list, err := client.Resource(resource).Namespace(l.namespace).List(ctx, options)
	if err != nil || len(list.Items) < least {
		return false
	}
	for i := range list.Items {
		if !l.holds(&list.Items[i]) {
			return false
		}
	}
	return true
}

func endpoints(namespace, service string) look {
	return look{"discovery.k8s.io", "v1", "endpointslices", namespace, "", "kubernetes.io/service-name=" + service,
		func(object *unstructured.Unstructured) bool {
			list, _, _ := unstructured.NestedSlice(object.Object, "endpoints")
			for _, endpoint := range list {
				if fields, ok := endpoint.(map[string]any); ok {
					if is, _, _ := unstructured.NestedBool(fields, "conditions", "ready"); is {
						return true
					}
				}
			}
			return false
		}}
}

func condition(kind string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, condition := range list {
			if fields, ok := condition.(map[string]any); ok && fields["type"] == kind {
				return fields["status"] == "True"
			}
		}
		return false
	}
}

func present(*unstructured.Unstructured) bool { return true }

func onAllNodes(object *unstructured.Unstructured) bool {
	wanted, _, _ := unstructured.NestedInt64(object.Object, "status", "desiredNumberScheduled")
	ready, _, _ := unstructured.NestedInt64(object.Object, "status", "numberReady")
	return wanted > 0 && wanted == ready
}

// copyLayers copies the folder of layers, without what Terragrunt may have left in it.
func copyLayers(from, to string) error {
	return copytree.Over(from, to, ".terragrunt-cache", ".terraform")
}
