package gates

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/test/kubetest"
)

func TestAPodRunsWithAVolumeOfTheClass(t *testing.T) {
	server := kubetest.Start(t)
	wait := begin(t, time.Minute, Condition{"volume", volume{connect(t, server), "fast"}, ""})
	wait.StaysShut(200 * time.Millisecond)
	get := func(resource schema.GroupVersionResource) (*unstructured.Unstructured, error) {
		return server.Client().Resource(resource).Namespace(proofNamespace).Get(t.Context(), proofVolume, metav1.GetOptions{})
	}
	if claim, err := get(kube.Claims); err == nil {
		t.Errorf("a volume is asked for before there is a class: %v", claim)
	}
	server.Put(kube.StorageClasses, "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: driver.longhorn.io}")
	wait.Sees("the claim is")
	becomes := func(resource schema.GroupVersionResource, phase string) {
		object, err := get(resource)
		if err != nil {
			t.Fatal(err)
		}
		_ = unstructured.SetNestedField(object.Object, phase, "status", "phase")
		if _, err := server.Client().Resource(resource).Namespace(proofNamespace).UpdateStatus(t.Context(), object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	claim, err := get(kube.Claims)
	if err != nil {
		t.Fatal(err)
	}
	if class, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName"); class != "fast" {
		t.Errorf("the volume is asked of the class %q", class)
	}
	server.Put(kube.Events, strings.NewReplacer("UID", string(claim.GetUID())).Replace(`
apiVersion: v1
kind: Event
metadata: {name: one, namespace: castle-proof}
involvedObject: {kind: PersistentVolumeClaim, namespace: castle-proof, name: volume, uid: UID}
type: Warning
reason: ProvisioningFailed
lastTimestamp: "2026-11-24T12:00:00Z"
message: no disk is large enough
`))
	wait.Sees("no disk is large enough")
	becomes(kube.Claims, "Bound")
	wait.Sees("the volume is there, the pod is")
	wait.StaysShut(200 * time.Millisecond)
	becomes(kube.Pods, "Running")
	wait.Opens()
	for _, resource := range []schema.GroupVersionResource{kube.Claims, kube.Pods} {
		left, err := server.Client().Resource(resource).Namespace(proofNamespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range left.Items {
			if object.GetDeletionTimestamp() == nil {
				t.Errorf("%s %s is left behind", object.GetKind(), object.GetName())
			}
		}
	}
}
