package gates

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/kube"
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
