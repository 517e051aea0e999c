package gates

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/kube"
)

// nodeReady tests a Node.
func nodeReady(node *unstructured.Unstructured) (string, bool) {
	return kube.HasCondition(node, "Ready")
}

// synced tests an ExternalSecret: its newest generation stands in the Secret. The controller keeps it as the first part
// of syncedResourceVersion ("2-<hash>").
func synced(secret *unstructured.Unstructured) (string, bool) {
	seen, ok := kube.Ready(secret)
	if !ok {
		return seen, false
	}
	version, _, _ := unstructured.NestedString(secret.Object, "status", "syncedResourceVersion")
	if generation, _, _ := strings.Cut(version, "-"); generation != fmt.Sprint(secret.GetGeneration()) {
		return fmt.Sprintf("synced before its generation %d", secret.GetGeneration()), false
	}
	return seen, true
}

// defaultClass tests a StorageClass.
func defaultClass(class *unstructured.Unstructured) (string, bool) {
	const annotation = "storageclass.kubernetes.io/is-default-class"
	if class.GetAnnotations()[annotation] != "true" {
		return "exists, but is not the default (no annotation " + annotation + "=true)", false
	}
	return "is the default", true
}

// accepted tests an IPAddressPool: MetalLB has counted its addresses.
func accepted(pool *unstructured.Unstructured) (string, bool) {
	free, used := counted(pool)
	if free+used == 0 {
		return "MetalLB has not taken it up yet", false
	}
	return fmt.Sprintf("%d addresses free, %d in use", free, used), true
}

// counted is how many addresses of an IPAddressPool are free and in use, as MetalLB counts them.
func counted(pool *unstructured.Unstructured) (free, used int64) {
	for _, family := range []string{"IPv4", "IPv6"} {
		f, _, _ := unstructured.NestedInt64(pool.Object, "status", "available"+family)
		u, _, _ := unstructured.NestedInt64(pool.Object, "status", "assigned"+family)
		free, used = free+f, used+u
	}
	return free, used
}
