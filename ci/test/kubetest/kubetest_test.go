package kubetest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAnAPIServerComesBackWithWhatItStored(t *testing.T) {
	started := time.Now()
	server := Start(t)
	t.Logf("started after %s", time.Since(started))
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	before := server.Put(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: kept}}")

	server.StopAPI()
	started = time.Now()
	server.StartAPI()
	t.Logf("started again after %s", time.Since(started))

	after, err := server.Client().Resource(namespaces).Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.GetUID() != before.GetUID() {
		t.Errorf("the namespace is another one: uid %s, was %s", after.GetUID(), before.GetUID())
	}
}

func TestCRDsComeFromTheirModules(t *testing.T) {
	server := Start(t)
	server.InstallCRDs("metallb", "ipaddresspools")
	pools := schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: "ipaddresspools"}
	pool := server.Put(pools, `{apiVersion: metallb.io/v1beta1, kind: IPAddressPool, metadata: {name: p, namespace: metallb-system},
		spec: {addresses: [192.0.2.0/24]}, status: {assignedIPv4: 0, assignedIPv6: 0, availableIPv4: 256, availableIPv6: 0}}`)
	if _, hasStatus := pool.Object["status"]; !hasStatus {
		t.Error("the status was not stored")
	}
}
