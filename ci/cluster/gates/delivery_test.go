package gates

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/test/fluxtest"
)

func TestTheHandOverHoldsUntilEveryKustomizationHasTheSourcesRevision(t *testing.T) {
	server := fluxtest.Install(t, &shared)
	gate := watchGate(t, "gitops", Env{Kube: connect(t, server.Server)}, time.Minute)
	gate.Sees("does not exist yet")

	// flux-needs-secret: the cause stands in what is seen.
	server.PutSource("False", "GitOperationFailed", "", "")
	gate.Sees("Ready is False: GitOperationFailed: failed to checkout and determine revision: authentication required")

	server.PutSource("True", "Succeeded", fluxtest.NewRevision, "")
	gate.Sees("Kustomization flux-system does not exist yet")
	server.PutKustomization("flux-system", "True", fluxtest.OldRevision)
	gate.Sees("flux-system: ready at " + fluxtest.OldRevision)
	server.PutKustomization("apps", "False", "")
	server.PutKustomization("flux-system", "True", fluxtest.NewRevision)
	gate.Sees("1 of 2 ready; apps: Ready is False: Said: said so at " + fluxtest.NewRevision)
	gate.StaysShut(300 * time.Millisecond)
	server.PutKustomization("apps", "True", fluxtest.NewRevision)
	gate.Opens()
}

func TestAFailedHandOverNamesTheCause(t *testing.T) {
	server := fluxtest.Install(t, &shared)
	server.PutSource("False", "GitOperationFailed", "", "")
	err := watchGate(t, "gitops", Env{Kube: connect(t, server.Server)}, time.Second).Fails()
	for _, part := range []string{
		"waiting for GitRepository flux-system: Ready is False: GitOperationFailed: failed to checkout",
		"authentication required, 1s; look at: kubectl -n flux-system describe gitrepository flux-system",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q:\n%v", part, err)
		}
	}
}

func TestAKustomizationIsToldWithTheRevisionThatItWasTriedAt(t *testing.T) {
	kustomization := func(name, tried, ready string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name, "namespace": flux.Namespace},
			"spec":     map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"}},
			"status": map[string]any{"lastAppliedRevision": tried, "lastAttemptedRevision": tried,
				"conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": "HealthCheckFailed", "message": "timeout waiting for apps"}}},
		}}
	}
	names := flux.DefaultDelivery
	seen, ok := allApplied([]*unstructured.Unstructured{
		kustomization("flux-system", fluxtest.NewRevision, "True"), kustomization("apps", fluxtest.OldRevision, "False"), kustomization("infra", fluxtest.NewRevision, "False"),
	}, names.Source, names.Kustomization, fluxtest.NewRevision)
	if ok {
		t.Error("two are not ready")
	}
	for _, part := range []string{
		"1 of 3 ready", "apps (tried " + fluxtest.OldRevision + "): Ready is False: HealthCheckFailed: timeout waiting for apps",
		"; infra: Ready is False: HealthCheckFailed", "at " + fluxtest.NewRevision,
	} {
		if !strings.Contains(seen, part) {
			t.Errorf("%q lacks %q", seen, part)
		}
	}
}

func TestWhatGitHoldsIsWaitedForLonger(t *testing.T) {
	if Limit("gitops") != 20*time.Minute || Limit("storage") != 10*time.Minute {
		t.Errorf("gitops %s, storage %s", Limit("gitops"), Limit("storage"))
	}
}
