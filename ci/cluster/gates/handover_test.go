package gates

import (
	"strings"
	"testing"
	"time"

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
