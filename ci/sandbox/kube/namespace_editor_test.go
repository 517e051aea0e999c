//go:build linux

package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"tazlab.net/castle/ci/cluster/layers/postrender"
	"tazlab.net/castle/ci/test/tell"
)

const namespaceEditors = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editors, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: editor}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: admins, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: administrator}]
`

// closedStore is as terragrunt/modules/engine makes one, with another provider.
const closedStore = `
apiVersion: v1
kind: Namespace
metadata: {name: elsewhere}
---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: closed}
spec:
  conditions: [{namespaces: [default]}]
  provider: {fake: {data: [{key: /word, value: found}]}}
`

// unreleased is a cluster without Secrets, which serves every kind.
type unreleased struct{ postrender.Cluster }

func (unreleased) Secret(context.Context, string, string) (map[string][]byte, error) { return nil, nil }

func TestAnEditorOfANamespaceGetsNothingOfAStore(t *testing.T) {
	operator := programs(t, "external-secrets")["external-secrets"]
	w := newWorld(t, map[string]string{ImageExternalSecrets: operator}, quick(t, nil))
	client := w.start()
	installExternalSecrets(w)
	for _, name := range operatorDeployments {
		w.available(client, "external-secrets", name, time.Minute)
	}

	chart, err := os.ReadFile("../../cluster/layers/postrender/testdata/external-secrets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, role, _ := strings.Cut(string(chart), "# Source: external-secrets/templates/rbac.yaml\n")
	var rendered bytes.Buffer
	if err := postrender.Run(t.Context(), "external-secrets", unreleased{}, bytes.NewReader(chart), &rendered); err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(rendered.String(), "---\n")
	installed := slices.IndexFunc(documents, func(document string) bool { return strings.Contains(document, `"kind":"ClusterRole"`) })
	if role == "" || installed < 0 {
		t.Fatalf("the chart has no ClusterRole:\n%s", rendered.String())
	}
	w.apply(namespaceEditors)
	w.apply(documents[installed])
	may := func(ctx context.Context, user, resource string) (bool, error) {
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "create", Group: "external-secrets.io", Resource: resource},
		}}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return review.Status.Allowed, nil
	}
	tell.Fault(t, "users are bound to edit and to admin in one namespace")
	users := []string{"editor", "administrator"}
	for _, user := range users {
		for _, resource := range []string{"externalsecrets", "secretstores"} {
			if allowed, err := may(t.Context(), user, resource); err != nil || allowed {
				t.Errorf("the %s may create %s: %v, %v", user, resource, allowed, err)
			}
		}
	}
	tell.Observation(t, 0, "neither may create an ExternalSecret or a SecretStore")

	// What the chart itself would give them, so that the answer above is not one of a cluster that aggregates nothing.
	w.apply(strings.Replace(role, "name: external-secrets-edit", "name: as-the-chart-has-it", 1))
	w.eventually(time.Minute, "the chart's own role is aggregated", func(ctx context.Context) error {
		for _, user := range users {
			if allowed, err := may(ctx, user, "externalsecrets"); err != nil || !allowed {
				return errors.Join(err, fmt.Errorf("the %s may not", user))
			}
		}
		return nil
	})

	w.eventually(time.Minute, "the webhook accepts a store", func(context.Context) error {
		w.apply(closedStore)
		return nil
	})
	asks := strings.Replace(externalSecret, "{kind: SecretStore, name: pretended}", "{kind: ClusterSecretStore, name: closed}", 1)
	w.apply(asks)
	w.apply(strings.Replace(asks, "namespace: default", "namespace: elsewhere", 1))
	w.eventually(30*time.Second, "a namespace of the store's gets its Secret", func(ctx context.Context) error {
		_, err := client.CoreV1().Secrets("default").Get(ctx, "token", metav1.GetOptions{})
		return err
	})
	kind := dynamic.NewForConfigOrDie(w.Admin()).Resource(schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: "externalsecrets"})
	w.eventually(30*time.Second, "another namespace is refused", func(ctx context.Context) error {
		asked, err := kind.Namespace("elsewhere").Get(ctx, "token", metav1.GetOptions{})
		if err == nil && !strings.Contains(fmt.Sprint(asked.Object["status"]), "SecretSyncedError") {
			err = fmt.Errorf("its status is %v", asked.Object["status"])
		}
		return err
	})
	if _, err := client.CoreV1().Secrets("elsewhere").Get(t.Context(), "token", metav1.GetOptions{}); err == nil {
		t.Error("a namespace that the store does not name got its Secret")
	}
}
