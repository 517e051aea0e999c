package gates

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/test/kubetest"
)

func TestAnUnprivilegedUserEndsTheWait(t *testing.T) {
	server := shared.Server(t)
	cert, key := server.Certificate("nobody")
	client, err := kube.Connect(server.Host, server.CA(), cert, key)
	if err != nil {
		t.Fatal(err)
	}
	hopeless(t, Condition{"nodes", nodesReady(client, []string{"a"}), "kubectl"}, `nodes is forbidden: User "nobody" cannot list`)
}

func TestACertificateOfAnotherClusterEndsTheWaitAfterItsGrace(t *testing.T) {
	server, other := shared.Server(t), kubetest.Start(t)
	cert, key := other.Certificate("admin", "system:masters")
	client, err := kube.Connect(server.Host, server.CA(), cert, key)
	if err != nil {
		t.Fatal(err)
	}
	client.Grace = 400 * time.Millisecond
	started := time.Now()
	hopeless(t, Condition{"nodes", nodesReady(client, []string{"a"}), "kubectl"}, "the API refuses the client certificate")
	if took := time.Since(started); took < client.Grace {
		t.Errorf("gave up after %s, before its grace", took)
	}
}

func TestAVersionThatIsNotServedEndsTheWait(t *testing.T) {
	server := shared.Server(t)
	server.InstallCRDs("metallb", "communities")
	wrong := schema.GroupVersionResource{Group: "metallb.io", Version: "v1", Resource: "communities"}
	hopeless(t, Condition{"community", connect(t, server).Objects(wrong, "metallb-system", kube.Present, "x"), ""},
		"CRD communities.metallb.io serves v1beta1, not v1")
}

func TestWhatTheLockdownWouldBreakEndsTheWait(t *testing.T) {
	server := kubetest.Start(t)
	server.InstallCRDs("flux-kustomize", "kustomizations")
	server.Put(kube.Deployments, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: kustomize-controller, namespace: flux-system},
		spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: manager, image: "a:1"}]}}}}`)
	server.Put(flux.Kustomizations, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: web, namespace: team},
		spec: {interval: 10m, path: ./web, prune: true, sourceRef: {kind: GitRepository, name: a}}}`)
	conditions, err := Conditions("gitops-tenancy", Env{Kube: connect(t, server)})
	if err != nil {
		t.Fatal(err)
	}
	hopeless(t, conditions[0], "Kustomization team/web names no service account")
}

// hopeless wants a wait to end long before its time.
func hopeless(t *testing.T, condition Condition, cause string) {
	t.Helper()
	beside := Condition{"what never comes", kube.WaitFunc(never), ""}
	err := begin(t, time.Minute, condition, beside).Fails()
	if _, ok := errors.AsType[*Impossible](err); !ok || !strings.Contains(err.Error(), cause) {
		t.Errorf("the error is %T %v, want an *Impossible with %q", err, err, cause)
	}
	if strings.Contains(err.Error(), beside.Name) {
		t.Errorf("the wait beside it is blamed too: %v", err)
	}
}
