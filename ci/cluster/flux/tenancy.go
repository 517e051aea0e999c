package flux

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/kube"
)

// Reconciler is the service account that Flux's controllers impersonate where an object names none (--default-service-account). The chart
// makes it in Flux's own namespace.
const Reconciler = "flux-reconciler"

// lockedDown is the argument by which a kustomize-controller is known that runs with the multi-tenancy lockdown.
const lockedDown = "--no-cross-namespace-refs"

var (
	alerts          = schema.GroupVersionResource{Group: "notification.toolkit.fluxcd.io", Version: "v1beta3", Resource: "alerts"}
	receivers       = schema.GroupVersionResource{Group: "notification.toolkit.fluxcd.io", Version: "v1", Resource: "receivers"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	accessReviews   = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
)

// AgainstLockdown names each object that Flux applies now, and that would fail once its controllers run with the multi-tenancy lockdown; each
// with its fix. There is none where they do already, or are not there. The rules are those of getSource and of the impersonation in
// internal/controller/kustomization_controller.go of kustomize-controller v1.9.5, of internal/acl/acl.go and internal/kube/impersonate.go of
// helm-controller v1.6.4, and of internal/server of notification-controller v1.9.3. Remote bases are only seen in the repository: check-gitops
// finds those.
func AgainstLockdown(ctx context.Context, client *kube.Client) ([]string, error) {
	controller, err := get(ctx, client, kube.Deployments, Namespace, "kustomize-controller")
	if err != nil || controller == nil || isLockedDown(controller) {
		return nil, err
	}
	var found []string
	for _, kind := range []struct {
		schema.GroupVersionResource
		problems func(context.Context, *kube.Client, *unstructured.Unstructured) ([]string, error)
	}{
		{Kustomizations, ofKustomization}, {HelmReleases, ofHelmRelease},
		{alerts, ofReferences("eventSources")}, {receivers, ofReferences("resources")},
	} {
		objects, err := list(ctx, client, kind.GroupVersionResource)
		if err != nil {
			return nil, err
		}
		for i := range objects {
			problems, err := kind.problems(ctx, client, &objects[i])
			if err != nil {
				return nil, err
			}
			for _, problem := range problems {
				found = append(found, fmt.Sprintf("%s %s/%s %s", objects[i].GetKind(), objects[i].GetNamespace(), objects[i].GetName(), problem))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// LockdownRefused says what to do about what AgainstLockdown has found; nil where that is nothing.
func LockdownRefused(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("the multi-tenancy lockdown would keep Flux's controllers from applying what they apply now:\n  %s\n"+
		"Fix the Git repository and let Flux apply it, or write tenancy: single under gitops in cluster.yaml to keep Flux as it is (docs/gitops-repo.md, Tenancy)",
		strings.Join(problems, "\n  "))
}

func isLockedDown(controller *unstructured.Unstructured) bool {
	containers, _, _ := unstructured.NestedSlice(controller.Object, "spec", "template", "spec", "containers")
	for _, container := range containers {
		fields, _ := container.(map[string]any)
		arguments, _, _ := unstructured.NestedStringSlice(fields, "args")
		if slices.Contains(arguments, lockedDown) || slices.Contains(arguments, lockedDown+"=true") {
			return true
		}
	}
	return false
}

func ofKustomization(ctx context.Context, client *kube.Client, object *unstructured.Unstructured) ([]string, error) {
	problems := crossing(object, "spec", "sourceRef")
	account, err := withoutAccount(ctx, client, object)
	return append(problems, account...), err
}

func ofHelmRelease(ctx context.Context, client *kube.Client, object *unstructured.Unstructured) ([]string, error) {
	problems := append(crossing(object, "spec", "chart", "spec", "sourceRef"), crossing(object, "spec", "chartRef")...)
	account, err := withoutAccount(ctx, client, object)
	if err != nil || len(account) > 0 || object.GetNamespace() == Namespace || text(object, "spec", "serviceAccountName") != "" {
		return append(problems, account...), err
	}
	// The account is there. Helm keeps each release in a Secret, the least that it has to be able to write.
	storage := object.GetNamespace()
	if named := text(object, "spec", "storageNamespace"); named != "" {
		storage = named
	}
	may, err := mayWriteSecrets(ctx, client, object.GetNamespace(), storage)
	if err == nil && !may {
		problems = append(problems, fmt.Sprintf("would be installed as the service account %s of its namespace, which may not write Secrets in %s: bind it to a role that may install the chart",
			Reconciler, storage))
	}
	return problems, err
}

// crossing tells of a reference to another namespace.
func crossing(object *unstructured.Unstructured, path ...string) []string {
	namespace := text(object, append(path, "namespace")...)
	if namespace == "" || namespace == object.GetNamespace() {
		return nil
	}
	return []string{fmt.Sprintf("takes from %s %s/%s, in another namespace: give it a source of that kind in %s, or move it to %[2]s and write spec.targetNamespace: %[4]s",
		text(object, append(path, "kind")...), namespace, text(object, append(path, "name")...), object.GetNamespace())}
}

// withoutAccount tells of an object that names no service account, and whose namespace has none of the default's name.
func withoutAccount(ctx context.Context, client *kube.Client, object *unstructured.Unstructured) ([]string, error) {
	if text(object, "spec", "serviceAccountName") != "" {
		return nil, nil
	}
	if _, elsewhere, _ := unstructured.NestedMap(object.Object, "spec", "kubeConfig"); elsewhere {
		return []string{fmt.Sprintf("applies to another cluster, and would do so as the service account %s in %s of that cluster: write spec.serviceAccountName, of one that is there",
			Reconciler, object.GetNamespace())}, nil
	}
	if object.GetNamespace() == Namespace {
		return nil, nil // the chart makes it
	}
	account, err := get(ctx, client, serviceAccounts, object.GetNamespace(), Reconciler)
	if err != nil || account != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("names no service account: write spec.serviceAccountName, of one in %s that may apply what it holds, or move it to %s and write spec.targetNamespace: %[1]s",
		object.GetNamespace(), Namespace)}, nil
}

// ofReferences tells of references to another namespace in a list of an object.
func ofReferences(field string) func(context.Context, *kube.Client, *unstructured.Unstructured) ([]string, error) {
	return func(_ context.Context, _ *kube.Client, object *unstructured.Unstructured) (problems []string, err error) {
		references, _, _ := unstructured.NestedSlice(object.Object, "spec", field)
		var others []string
		for _, reference := range references {
			fields, _ := reference.(map[string]any)
			namespace, _, _ := unstructured.NestedString(fields, "namespace")
			if namespace != "" && namespace != object.GetNamespace() && !slices.Contains(others, namespace) {
				others = append(others, namespace)
			}
		}
		if len(others) == 0 {
			return nil, nil
		}
		return []string{fmt.Sprintf("names objects in %s in spec.%s, in another namespace: make one of it in each of these namespaces", strings.Join(others, ", "), field)}, nil
	}
}

func mayWriteSecrets(ctx context.Context, client *kube.Client, account, namespace string) (may bool, err error) {
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
		"spec": map[string]any{
			"user":               "system:serviceaccount:" + account + ":" + Reconciler,
			"groups":             []any{"system:serviceaccounts", "system:serviceaccounts:" + account, "system:authenticated"},
			"resourceAttributes": map[string]any{"namespace": namespace, "verb": "create", "resource": "secrets"},
		},
	}}
	err = client.Ask(ctx, func(ctx context.Context) error {
		answer, err := client.Resource(accessReviews).Create(ctx, review, metav1.CreateOptions{})
		if err == nil {
			may, _, _ = unstructured.NestedBool(answer.Object, "status", "allowed")
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("ask what the service account %s/%s may do: %w", account, Reconciler, kube.Brief(err))
	}
	return may, nil
}

// get gives an object, nil where it is not there.
func get(ctx context.Context, client *kube.Client, kind schema.GroupVersionResource, namespace, name string) (object *unstructured.Unstructured, err error) {
	err = client.Ask(ctx, func(ctx context.Context) (err error) {
		object, err = client.Resource(kind).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look at %s %s/%s: %w", kind.Resource, namespace, name, kube.Brief(err))
	}
	return object, nil
}

// list gives all objects of a kind; one that is not defined has none.
func list(ctx context.Context, client *kube.Client, kind schema.GroupVersionResource) (objects []unstructured.Unstructured, err error) {
	err = client.Ask(ctx, func(ctx context.Context) error {
		found, err := client.Resource(kind).List(ctx, metav1.ListOptions{})
		if err == nil {
			objects = found.Items
		}
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list %s: %w", kind.Resource, kube.Brief(err))
	}
	return objects, nil
}

func text(object *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}
