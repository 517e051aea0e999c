package drain

import (
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/test/kubetest"
)

var shared kubetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

var (
	budgets = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
)

// pod is one on a node; there is no kubelet, so that the test deletes what was asked to end.
func pod(name, node, owner, more string) string {
	if owner != "" {
		owner = "\n  ownerReferences: [{apiVersion: apps/v1, kind: " + owner + ", name: x, uid: x, controller: true}]"
	}
	return `
metadata:
  name: ` + name + `
  namespace: drain
  labels: {app: ` + name + `}` + owner + `
spec:
  nodeName: ` + node + `
  serviceAccountName: ""
  automountServiceAccountToken: false
  containers: [{name: c, image: i}]
status: {phase: Running` + more + `}
`
}

func TestADrainTakesAllOffThatCanGoAndTellsWhatHoldsTheRest(t *testing.T) {
	server := shared.Server(t)
	client, err := kube.FromEnv(server.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	server.Put(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "metadata: {name: default, namespace: drain}")
	server.Put(kube.Nodes, "metadata: {name: n1}")
	for name, owner := range map[string]string{"web": "ReplicaSet", "held": "ReplicaSet", "agent": "DaemonSet", "alone": "", "done": ""} {
		more := ", conditions: [{type: Ready, status: \"True\"}]"
		text := pod(name, "n1", owner, more)
		if name == "done" {
			text = strings.Replace(text, "Running", "Succeeded", 1)
		}
		server.Put(kube.Pods, text)
	}
	server.Put(kube.Pods, pod("elsewhere", "n2", "ReplicaSet", ""))
	server.Put(budgets, `
metadata: {name: keep, namespace: drain, generation: 1}
spec: {minAvailable: 1, selector: {matchLabels: {app: held}}}
status: {observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}
`)
	node, err := Of(client, "n1")
	if err != nil {
		t.Fatal(err)
	}
	orphans, err := node.Orphans(t.Context())
	if err != nil || strings.Join(orphans, " ") != "drain/alone" {
		t.Errorf("the pods that nobody makes again are %v, %v", orphans, err)
	}

	err = node.Drain(t.Context(), Options{Deadline: 3 * time.Second, KeepOrphans: true}, func(string) {})
	if err == nil {
		t.Fatal("the budget was broken")
	}
	for _, want := range []string{"n1 still has pods after 3s, and stays cordoned", "drain/held is held: Cannot evict pod", "The disruption budget keep needs 1 healthy pods and has 1 currently"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	is := func(name string) *unstructured.Unstructured {
		object, err := server.Client().Resource(kube.Pods).Namespace("drain").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return nil
		}
		return object
	}
	for name, stays := range map[string]bool{"web": false, "alone": true, "done": false, "held": true, "agent": true, "elsewhere": true} {
		if object := is(name); stays != (object != nil && object.GetDeletionTimestamp() == nil) {
			t.Errorf("%s: stays %v", name, object != nil)
		}
	}
	seen, err := client.Resource(kube.Nodes).Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if cordoned, _, _ := unstructured.NestedBool(seen.Object, "spec", "unschedulable"); !cordoned {
		t.Error("the node is not cordoned")
	}

	// The budget goes, and so does the pod; the kubelet ends those that were asked to.
	server.Delete(budgets, "drain", "keep")
	kubelet := time.AfterFunc(time.Second, func() {
		now := int64(0)
		for _, name := range []string{"web", "alone", "done", "held"} {
			_ = server.Client().Resource(kube.Pods).Namespace("drain").Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		}
	})
	defer kubelet.Stop()
	if err := node.Drain(t.Context(), Options{Deadline: time.Minute}, func(string) {}); err != nil {
		t.Error(err)
	}
	if err := node.Cordon(t.Context(), false); err != nil {
		t.Error(err)
	}
}
