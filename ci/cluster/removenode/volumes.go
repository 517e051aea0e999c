package removenode

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// longhornReplicas are Longhorn's records of the copies of volumes.
var longhornReplicas = schema.GroupVersionResource{Group: "longhorn.io", Version: "v1beta2", Resource: "replicas"}

// volumesStay fails where a volume of Longhorn has no healthy copy on another node.
func (l *leaving) volumesStay(ctx context.Context) error {
	replicas, err := l.api.Replicas(ctx)
	if err != nil {
		return fmt.Errorf("look for volumes of Longhorn: %w", err)
	}
	if lost := onlyOn(replicas, l.Node); len(lost) > 0 {
		return fmt.Errorf("no other node than %s has a healthy copy of these volumes of Longhorn: %s; give them more copies, and wait until these are healthy, or delete them", l.Node, strings.Join(lost, ", "))
	}
	return nil
}

// onlyOn are the volumes whose data would be lost with this node. A copy is healthy once it was whole and has not failed since, as
// Longhorn judges before it lets a node be drained (controller/instance_manager_controller.go of longhorn-manager); one that failed may
// still be rescued, so that it counts here and nowhere else.
func onlyOn(replicas []unstructured.Unstructured, node string) []string {
	here, elsewhere := map[string]bool{}, map[string]bool{}
	for _, replica := range replicas {
		field := func(name string) string {
			text, _, _ := unstructured.NestedString(replica.Object, "spec", name)
			return text
		}
		volume := field("volumeName")
		switch {
		case field("healthyAt") == "" || replica.GetDeletionTimestamp() != nil:
		case field("nodeID") == node:
			here[volume] = true
		case field("failedAt") == "":
			elsewhere[volume] = true
		}
	}
	maps.DeleteFunc(here, func(volume string, _ bool) bool { return elsewhere[volume] })
	return slices.Sorted(maps.Keys(here))
}
