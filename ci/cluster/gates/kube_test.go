package gates

import (
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/test/kubetest"
)

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestTheEnvironmentsGapsAreNamedAtOnce(t *testing.T) {
	_, err := KubeFromEnv(func(name string) string { return map[string]string{"KUBE_HOST": "https://192.0.2.1:6443"}[name] })
	if err == nil || !strings.Contains(err.Error(), "KUBE_CLUSTER_CA_CERT_DATA, KUBE_CLIENT_CERT_DATA, KUBE_CLIENT_KEY_DATA not set") {
		t.Errorf("got %v", err)
	}
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func TestAWaitSurvivesARestartOfTheAPI(t *testing.T) {
	server := kubetest.Start(t)
	wait := begin(t, time.Minute, Condition{"config", connect(t, server).Objects(configMaps, "there", present, "late"), ""})
	wait.Sees("does not exist yet")
	server.StopAPI()
	wait.Sees("cannot read configmaps: ")
	wait.Sees("connect: connection refused")
	server.StartAPI()
	server.Put(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: there}}")
	if took := wait.Opens(); took > time.Second {
		t.Errorf("noticed after %s", took)
	}
}

func TestAnUnprivilegedUserEndsTheWait(t *testing.T) {
	server := shared.Server(t)
	cert, key := server.Certificate("nobody")
	kube, err := NewKube(server.Host, server.CA(), cert, key)
	if err != nil {
		t.Fatal(err)
	}
	hopeless(t, Condition{"nodes", nodesReady(kube, []string{"a"}), "kubectl"}, `nodes is forbidden: User "nobody" cannot list`)
}

func TestACertificateOfAnotherClusterEndsTheWaitAfterItsGrace(t *testing.T) {
	server, other := shared.Server(t), kubetest.Start(t)
	cert, key := other.Certificate("admin", "system:masters")
	kube, err := NewKube(server.Host, server.CA(), cert, key)
	if err != nil {
		t.Fatal(err)
	}
	kube.grace = 400 * time.Millisecond
	started := time.Now()
	hopeless(t, Condition{"nodes", nodesReady(kube, []string{"a"}), "kubectl"}, "the API refuses the client certificate")
	if took := time.Since(started); took < kube.grace {
		t.Errorf("gave up after %s, before its grace", took)
	}
}

func TestAVersionThatIsNotServedEndsTheWait(t *testing.T) {
	server := shared.Server(t)
	server.InstallCRDs("metallb", "communities")
	wrong := schema.GroupVersionResource{Group: "metallb.io", Version: "v1", Resource: "communities"}
	hopeless(t, Condition{"community", connect(t, server).Objects(wrong, "metallb-system", present, "x"), ""},
		"CRD communities.metallb.io serves v1beta1, not v1")
}

func TestAKindThatIsNotDefinedYetIsWaitedFor(t *testing.T) {
	server := shared.Server(t)
	profiles := schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: "bfdprofiles"}
	wait := begin(t, time.Minute, Condition{"profile", connect(t, server).Objects(profiles, "metallb-system", present, "x"), ""})
	wait.Sees("CRD bfdprofiles.metallb.io does not exist yet")
	server.InstallCRDs("metallb", "bfdprofiles")
	wait.Sees("does not exist yet")
	server.Put(profiles, "{apiVersion: metallb.io/v1beta1, kind: BFDProfile, metadata: {name: x, namespace: metallb-system}, spec: {}}")
	wait.Opens()
}

// hopeless wants a wait to end long before its time.
func hopeless(t *testing.T, condition Condition, cause string) {
	t.Helper()
	beside := Condition{"what never comes", waiterFunc(never), ""}
	err := begin(t, time.Minute, condition, beside).Fails()
	if _, ok := errors.AsType[*Impossible](err); !ok || !strings.Contains(err.Error(), cause) {
		t.Errorf("the error is %T %v, want an *Impossible with %q", err, err, cause)
	}
	if strings.Contains(err.Error(), beside.Name) {
		t.Errorf("the wait beside it is blamed too: %v", err)
	}
}

func TestALoadBalancerGetsAnAddressOfThePool(t *testing.T) {
	server := shared.Server(t)
	kube := connect(t, server)
	wait := begin(t, time.Minute, Condition{"address", LoadBalancer{kube, "castle", []string{"192.0.2.16/28", "192.0.2.40-192.0.2.50"}}, ""})
	wait.Sees("no address yet")
	assign := func(address string) {
		client := server.Client().Resource(services).Namespace(ProofNamespace)
		service, err := client.Get(t.Context(), proofService, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if pool := service.GetAnnotations()["metallb.io/address-pool"]; pool != "castle" {
			t.Errorf("the address is asked from the pool %q", pool)
		}
		_ = unstructured.SetNestedSlice(service.Object, []any{map[string]any{"ip": address}}, "status", "loadBalancer", "ingress")
		if _, err := client.UpdateStatus(t.Context(), service, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	assign("192.0.2.51")
	wait.Sees("got 192.0.2.51, which is not in 192.0.2.16/28, 192.0.2.40-192.0.2.50")
	wait.StaysShut(200 * time.Millisecond)
	assign("192.0.2.50")
	wait.Opens()
	left, err := server.Client().Resource(services).Namespace(ProofNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("%d services are left behind, %v", len(left.Items), err)
	}
}
