package gates

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/test/kubetest"
)

func TestALoadBalancerGetsAnAddressOfThePool(t *testing.T) {
	server := shared.Server(t)
	client := connect(t, server)
	wait := begin(t, time.Minute, Condition{"address", loadBalancer{client, "castle", []string{"192.0.2.16/28", "192.0.2.40-192.0.2.50"}}, ""})
	wait.Sees("no address yet")
	assign := func(address string) {
		client := server.Client().Resource(kube.Services).Namespace(proofNamespace)
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
	left, err := server.Client().Resource(kube.Services).Namespace(proofNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("%d services are left behind, %v", len(left.Items), err)
	}
}

// TestAPoolThatOthersHoldIsNoFault: MetalLB answers, and nobody's address is castle's to take. A refusal while the pool has addresses is
// one.
func TestAPoolThatOthersHoldIsNoFault(t *testing.T) {
	server := kubetest.Start(t)
	server.InstallCRDs("metallb", "ipaddresspools")
	wait := begin(t, time.Minute, Condition{"address", loadBalancer{connect(t, server), "castle", []string{"192.0.2.16/31"}}, ""})
	wait.Sees("no address yet")
	own, err := server.Client().Resource(kube.Services).Namespace(proofNamespace).Get(t.Context(), proofService, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(name, uid string) {
		server.Put(kube.Events, strings.NewReplacer("NAME", name, "UID", uid).Replace(`
apiVersion: v1
kind: Event
metadata: {name: NAME, namespace: castle-proof}
involvedObject: {kind: Service, namespace: castle-proof, name: loadbalancer, uid: UID}
type: Warning
reason: AllocationFailed
message: 'Failed to allocate IP for "castle-proof/loadbalancer": ["<nil>"] is not allowed in config'
`))
	}
	count := func(free, used string) {
		server.Put(addressPools, `{apiVersion: metallb.io/v1beta1, kind: IPAddressPool, metadata: {name: castle, namespace: metallb-system},
			spec: {addresses: [192.0.2.16/31]}, status: {assignedIPv4: `+used+`, assignedIPv6: 0, availableIPv4: `+free+`, availableIPv6: 0}}`)
	}
	count("0", "2")
	refuse("earlier", "5a1d6e54-0000-4000-8000-000000000000")
	wait.StaysShut(200 * time.Millisecond)
	count("1", "1")
	refuse("own", string(own.GetUID()))
	wait.StaysShut(200 * time.Millisecond)
	count("0", "2")
	wait.Opens()
}
