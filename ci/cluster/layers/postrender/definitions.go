package postrender

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const definitionKind = "CustomResourceDefinition"

// release is what Helm knows a chart's objects by.
type release struct{ name, namespace string }

// metallbRelease is the one that the module networking installs. MetalLB's programs end where they start before the API server serves their kinds
// (IsObjectNamespaced, called by defaultOpts in pkg/cache/cache.go of controller-runtime v0.20), and with the webhook's certificate beforehand they
// have nothing else to wait for. The kubelet starts them again, with pauses that double.
var metallbRelease = release{name: "metallb", namespace: "metallb-system"}

// define has the cluster serve the CRDs among the documents before Helm sends anything that uses them; Helm itself sends them right before the
// rest. They bear the marks by which it takes objects that are there already for the release's (checkOwnership in pkg/action/validate.go of
// Helm v3). The documents stay as they are.
func (r release) define(ctx context.Context, cluster Cluster, documents [][]byte) error {
	var definitions []object
	for _, document := range documents {
		if kindOf(document) != definitionKind {
			continue
		}
		o := object(&unstructured.Unstructured{})
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return fmt.Errorf("read a %s: %w", definitionKind, err)
		}
		r.mark(o)
		definitions = append(definitions, o)
	}
	if len(definitions) == 0 {
		return fmt.Errorf("there is no %s among them: the chart brings them otherwise than castle knows; look for the version in terragrunt/charts.yaml", definitionKind)
	}
	return cluster.Define(ctx, definitions)
}

func (r release) mark(o object) {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = r.name, r.namespace
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}
