package postrender

import (
	"context"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// earlyReadiness lets a pod be asked soon and often whether it is ready. The chart of External Secrets Operator gives its
// webhook and its certificate controller 20 s before the first look; everything that needs a secret would wait for it.
func earlyReadiness(_ context.Context, _ Cluster, objects []object) error {
	for _, o := range objects {
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil {
			return err
		}
		for _, container := range containers {
			if probe, has, _ := unstructured.NestedMap(container.(map[string]any), "readinessProbe"); has {
				probe["initialDelaySeconds"], probe["periodSeconds"] = int64(1), int64(2)
				container.(map[string]any)["readinessProbe"] = probe
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			return err
		}
	}
	return nil
}

// aggregation marks what a role gives to the roles view, edit and admin of every namespace.
const aggregation = "rbac.authorization.k8s.io/aggregate-to-"

// aggregateNothing keeps who may view, edit or administer a namespace from the operator's kinds. The chart has values for the first two only, and
// the third would let them ask for every secret that a store's identity reads.
func aggregateNothing(_ context.Context, _ Cluster, objects []object) error {
	for _, o := range objects {
		labels := o.GetLabels()
		maps.DeleteFunc(labels, func(name, _ string) bool { return strings.HasPrefix(name, aggregation) })
		o.SetLabels(labels)
	}
	return nil
}

// externalSecretsWebhook is known to External Secrets Operator's certificate controller (pkg/controllers/crds in v0.20.4), which makes one after
// both are started; the webhook looks for it every ten seconds only.
var externalSecretsWebhook = server{
	label: [2]string{"external-secrets.io/component", "webhook"}, authority: "external-secrets", organization: "external-secrets", untold: true,
}
