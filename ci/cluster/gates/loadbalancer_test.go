package gates

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/sandbox/kube/relay"
	"tazlab.net/castle/ci/test/kubetest"
	"tazlab.net/castle/ci/test/waittest"
)

var controlPlanes = []config.Node{{Name: "cp-1", Address: netip.MustParseAddr("192.0.2.11")}, {Name: "cp-2", Address: netip.MustParseAddr("192.0.2.12")}}

func withPools(t *testing.T) *kubetest.Server {
	t.Helper()
	server := shared.Server(t)
	server.InstallCRDs("metallb", "ipaddresspools")
	return server
}

// assign gives the proof's Service an address, as MetalLB does.
func assign(t *testing.T, server *kubetest.Server, address string) {
	t.Helper()
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

func TestTheAPIAnswersAtALoadBalancersAddressOfThePool(t *testing.T) {
	server := withPools(t)
	client := connect(t, server)
	wait := begin(t, time.Minute, Condition{"address", loadBalancer{client, "castle", []string{"127.10.2.16/28", "127.10.2.40-127.10.2.50"}, controlPlanes, time.Minute}, ""})
	wait.Sees("no address yet")
	assign(t, server, "127.10.2.51")
	wait.Sees("got 127.10.2.51, which is not in 127.10.2.16/28, 127.10.2.40-127.10.2.50")
	wait.StaysShut(200 * time.Millisecond)
	slice, err := server.Client().Resource(kube.EndpointSlices).Namespace(proofNamespace).Get(t.Context(), proofService, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if endpoints, _, _ := unstructured.NestedSlice(slice.Object, "endpoints"); len(endpoints) != 2 || slice.GetLabels()["kubernetes.io/service-name"] != proofService {
		t.Errorf("the Service leads to %v by the labels %v", endpoints, slice.GetLabels())
	}
	assign(t, server, "127.10.2.50")
	wait.Sees("got 127.10.2.50, and nobody answers there: ")
	wait.StaysShut(200 * time.Millisecond)
	to, err := url.Parse(client.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	wire, err := relay.Listen(netip.MustParseAddrPort("127.10.2.50:6443"), netip.MustParseAddrPort(to.Host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wire.Close)
	wait.Opens()
	nothingIsLeft(t, server)
}

func nothingIsLeft(t *testing.T, server *kubetest.Server) {
	t.Helper()
	for _, kind := range []schema.GroupVersionResource{kube.Services, kube.EndpointSlices} {
		left, err := server.Client().Resource(kind).Namespace(proofNamespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) != 0 {
			t.Errorf("%d %s are left behind, %v", len(left.Items), kind.Resource, err)
		}
	}
}

// TestAnAddressAtWhichNobodyAnswersIsTold when the speakers have had their time: what stands in between need not be the cluster's.
func TestAnAddressAtWhichNobodyAnswersIsTold(t *testing.T) {
	server := withPools(t)
	speakers := func(available string) {
		server.Put(kube.DaemonSets, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: metallb-speaker, namespace: metallb-system},
			spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}},
			status: {observedGeneration: 1, currentNumberScheduled: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberMisscheduled: 0,
				numberReady: `+available+`, numberAvailable: `+available+`}}`)
	}
	speakers("1")
	var mutex sync.Mutex
	var last Event
	condition := Condition{"address", loadBalancer{connect(t, server), "castle", []string{"127.10.2.60/31"}, controlPlanes, time.Second}, "kubectl"}
	wait := waittest.Begin(t, func(ctx context.Context, saw func(string)) error {
		return Wait(ctx, "test", []Condition{condition}, Options{Timeout: time.Minute, Events: func(event Event) {
			mutex.Lock()
			defer mutex.Unlock()
			if event.Condition != "" {
				last = event
			}
			if event.Phase == PhaseWaiting {
				saw(event.Seen)
			}
		}})
	})
	wait.Sees("no address yet")
	assign(t, server, "127.10.2.60")
	wait.Sees("nobody answers there")
	wait.Sees("MetalLB's speakers: Available: 1/2")
	wait.StaysShut(1500 * time.Millisecond)
	speakers("2")
	wait.Opens()
	mutex.Lock()
	defer mutex.Unlock()
	told := last.Record("networking")
	if told.Result != timeline.ResultUnproven || !strings.HasPrefix(told.Cause, "got 127.10.2.60, and nobody answers there: ") || told.Next != "kubectl" {
		t.Errorf("it is told as %+v", told)
	}
	nothingIsLeft(t, server)
}

// TestAPoolThatOthersHoldIsNoFault: MetalLB answers, and nobody's address is castle's to take. A refusal while the pool has addresses is
// one.
func TestAPoolThatOthersHoldIsNoFault(t *testing.T) {
	server := kubetest.Start(t)
	server.InstallCRDs("metallb", "ipaddresspools")
	wait := begin(t, time.Minute, Condition{"address", loadBalancer{connect(t, server), "castle", []string{"192.0.2.16/31"}, controlPlanes, time.Minute}, ""})
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
