package removenode

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestVolumesAreLostThatNoOtherNodeHasInFull(t *testing.T) {
	replica := func(volume, node, healthyAt, failedAt string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"volumeName": volume, "nodeID": node, "healthyAt": healthyAt, "failedAt": failedAt,
		}}}
	}
	const then = "2026-01-01T00:00:00Z"
	replicas := []unstructured.Unstructured{
		replica("two copies", "n1", then, ""), replica("two copies", "n2", then, ""),
		replica("one copy", "n1", then, ""),
		replica("the other failed", "n1", then, ""), replica("the other failed", "n2", then, then),
		replica("the other is rebuilt", "n1", then, ""), replica("the other is rebuilt", "n2", "", ""),
		replica("failed everywhere", "n1", then, then), replica("failed everywhere", "n2", then, then),
		replica("failed here", "n1", then, then), replica("failed here", "n2", then, ""),
		replica("never whole", "n1", "", ""),
		replica("elsewhere", "n2", then, ""),
	}
	want := []string{"failed everywhere", "one copy", "the other failed", "the other is rebuilt"}
	if got := onlyOn(replicas, "n1"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
