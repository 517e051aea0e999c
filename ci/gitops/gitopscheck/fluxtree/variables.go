package fluxtree

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/resource"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// variables are what postBuild of a Kustomization puts into its objects.
type variables struct {
	wanted bool
	always bool // also where there are none, for the sake of defaults
	values map[string]string
	// complete says that no source of variables is missing in the repository: a name that is not among the values has none.
	complete bool
	empty    map[string]bool // names without a value and without a default, which become nothing
}

// plain is a variable without default: ${NAME}. Two dollar signs are one in the result.
var plain = regexp.MustCompile(`(\$+)\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// substitute puts the variables into a resource as kustomize-controller does. A variable that only the cluster knows becomes
// manifests.UnknownValue, unless it has a default.
func (v *variables) substitute(ctx context.Context, by unstructured.Unstructured, into *resource.Resource) error {
	// With no variable at all kustomize-controller substitutes nothing, defaults included, unless it is told to.
	if len(v.values) == 0 && v.complete && !v.always {
		return nil
	}
	text, err := into.AsYAML()
	if err != nil {
		return err
	}
	values := maps.Clone(v.values)
	for _, found := range plain.FindAllStringSubmatch(string(text), -1) {
		name := found[2]
		if _, known := values[name]; known || len(found[1])%2 == 0 {
			continue
		}
		values[name] = manifests.UnknownValue
		if v.complete && into.GetAnnotations()[substitution] != kustomize.DisabledValue && into.GetLabels()[substitution] != kustomize.DisabledValue {
			v.empty[name] = true
		}
	}
	_, err = kustomize.SubstituteVariables(ctx, nil, substituted(by, values), into, kustomize.SubstituteWithDryRun(true), kustomize.SubstituteWithAlways(true))
	return err
}

const substitution = "kustomize.toolkit.fluxcd.io/substitute"

// variablesOf reads postBuild, with what the repository has of the ConfigMaps and Secrets that it names.
func (t *tree) variablesOf(by *manifests.Object, near string) variables {
	spec := manifests.Map(by.Object, "spec", "postBuild")
	vars := variables{wanted: spec != nil, always: manifests.Text(spec, "substituteStrategy") == "Always", values: map[string]string{}, complete: true, empty: map[string]bool{}}
	for _, from := range manifests.List(spec, "substituteFrom") {
		kind, name := manifests.Text(from, "kind"), manifests.Text(from, "name")
		found := t.dataOf(kind, by.GetNamespace(), name, near)
		if found == nil || kind == "Secret" && t.filledInCluster(name) {
			vars.complete = false
		}
		maps.Copy(vars.values, found)
	}
	for name, value := range manifests.Map(spec, "substitute") {
		if text, is := value.(string); is {
			vars.values[name] = strings.ReplaceAll(text, "\n", "")
		}
	}
	return vars
}

// dataOf is what a ConfigMap or Secret holds; nil: the repository does not have it, or has several of which none is nearer.
// Values that are encrypted are unknown.
func (t *tree) dataOf(kind, namespace, name, near string) map[string]string {
	for _, object := range t.objects {
		if object.GetKind() == kind && object.GetName() == name && object.GetNamespace() == namespace {
			return dataIn(object.Object)
		}
	}
	var candidates []*manifests.Document
	for _, document := range t.files.Of("", kind) {
		if document.Name == name && (document.Namespace == namespace || document.Namespace == "") && document.Object != nil {
			candidates = append(candidates, document)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *manifests.Document) int {
		return common(b.File.Name, near) - common(a.File.Name, near)
	})
	switch {
	case len(candidates) == 0:
		return nil
	case len(candidates) > 1 && common(candidates[0].File.Name, near) == common(candidates[1].File.Name, near):
		return nil
	}
	return dataIn(candidates[0].Object)
}

// filledInCluster says that something in the cluster writes a Secret, too.
func (t *tree) filledInCluster(name string) bool {
	for _, of := range [][2]string{{"external-secrets.io", "ExternalSecret"}, {"external-secrets.io", "ClusterExternalSecret"}, {"bitnami.com", "SealedSecret"}} {
		for _, document := range t.files.Of(of[0], of[1]) {
			if document.Name == name || manifests.Text(document.Object, "spec", "target", "name") == name || manifests.Text(document.Object, "spec", "externalSecretName") == name {
				return true
			}
		}
	}
	return false
}

// common is how many folders two paths begin with in common.
func common(a, b string) int {
	first, second := strings.Split(a, "/"), strings.Split(b, "/")
	n := 0
	for n < min(len(first), len(second)) && first[n] == second[n] {
		n++
	}
	return n
}

func dataIn(object map[string]any) map[string]string {
	values := map[string]string{}
	secret := object["kind"] == "Secret"
	for _, field := range []string{"data", "stringData"} {
		for name, value := range manifests.Map(object, field) {
			text, is := value.(string)
			// What is in a Secret is nobody's business, even where it stands in clear.
			if !is || secret || manifests.HasUnknown(text) {
				text = manifests.UnknownValue
			}
			values[name] = strings.ReplaceAll(text, "\n", "")
		}
	}
	return values
}
