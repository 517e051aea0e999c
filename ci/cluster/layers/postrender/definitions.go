package postrender

import (
	"context"
	"fmt"

	"tazlab.net/castle/ci/cluster/layers"
)

const definitionKind = "CustomResourceDefinition"

// metallbRelease is the one of the layer networking. MetalLB's programs end where they start before the API server serves their kinds
// (IsObjectNamespaced, called by defaultOpts in pkg/cache/cache.go of controller-runtime v0.20), and with the webhook's certificate beforehand they
// have nothing else to wait for. The kubelet starts them again, with pauses that double.
var metallbRelease = layers.Named(layers.Networking).Release

// define has the cluster serve the CRDs among the documents before Helm sends anything that uses them; Helm itself sends them right before the
// rest. They bear the marks by which it takes objects that are there already for the release's (checkOwnership in pkg/action/validate.go of
// Helm v3). The documents stay as they are.
func define(ctx context.Context, cluster Cluster, release layers.Release, documents [][]byte) error {
	_, definitions, err := parse(documents, definitionKind)
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		mark(definition, release)
	}
	if len(definitions) == 0 {
		return fmt.Errorf("there is no %s among them: the chart brings them otherwise than castle knows; look for the version in terragrunt/charts.yaml", definitionKind)
	}
	return cluster.Define(ctx, definitions)
}

func mark(o object, release layers.Release) {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = release.Name, release.Namespace
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}
