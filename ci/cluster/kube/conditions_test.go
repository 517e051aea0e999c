package kube

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// deployment is one of two pods that are available, with a change.
func deployment(change func(spec, status map[string]any)) *unstructured.Unstructured {
	spec := map[string]any{"replicas": int64(2)}
	status := map[string]any{
		"observedGeneration": int64(3), "replicas": int64(2), "updatedReplicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2),
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
	}
	change(spec, status)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d", "generation": int64(3)}, "spec": spec, "status": status,
	}}
}

func TestPodsOfAnOlderGenerationAreNotAvailable(t *testing.T) {
	for name, test := range map[string]struct {
		change func(spec, status map[string]any)
		want   bool
	}{
		"all new":             {func(_, _ map[string]any) {}, true},
		"not observed":        {func(_, s map[string]any) { s["observedGeneration"] = int64(2) }, false},
		"one old pod left":    {func(_, s map[string]any) { s["replicas"] = int64(3) }, false},
		"one not updated":     {func(_, s map[string]any) { s["updatedReplicas"] = int64(1) }, false},
		"one not available":   {func(_, s map[string]any) { s["availableReplicas"] = int64(1) }, false},
		"scaled to nothing":   {func(p, s map[string]any) { p["replicas"] = int64(0); clear(s); s["observedGeneration"] = int64(3) }, false},
		"status not there":    {func(_, s map[string]any) { clear(s) }, false},
		"default replica yet": {func(p, _ map[string]any) { delete(p, "replicas") }, false},
	} {
		if seen, ok := Available(deployment(test.change)); ok != test.want {
			t.Errorf("%s: %v (%s), want %v", name, ok, seen, test.want)
		}
	}
}

func TestWhyADeploymentGetsNoPodsIsTold(t *testing.T) {
	seen, ok := Available(deployment(func(_, status map[string]any) {
		status["updatedReplicas"] = int64(0)
		status["conditions"] = append(status["conditions"].([]any), map[string]any{
			"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": `pods "d-1" is forbidden: exceeded quota: few`,
		})
	}))
	if ok || !strings.HasSuffix(seen, `; FailedCreate: pods "d-1" is forbidden: exceeded quota: few`) {
		t.Errorf("%v: %s", ok, seen)
	}
}
