package rollout

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/redact/redacttest"
	"tazlab.net/castle/ci/base/tracing/tracingtest"
	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/test/fluxtest"
)

// Flux's message is longer than what is kept of it, and somewhere around the place of the cut it names a secret.
func TestAWaiterTellsItsStepsWithoutEvenHalfASecret(t *testing.T) {
	server := fluxtest.Install(t, &shared)
	secret := redacttest.Token
	redact.Add(secret)
	quoted := strings.ReplaceAll(secret, `"`, `\"`)
	message := strings.Repeat("x", 500) + strings.Repeat(" "+quoted, 10)
	server.Put(flux.GitRepositories, fmt.Sprintf(`{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: flux-system, namespace: flux-system},
		spec: {url: "https://192.0.2.12/tazlab-k8s.git", interval: 1m}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False",
		reason: GitOperationFailed, message: "%s", lastTransitionTime: "%s"}]}}`, message, fluxtest.AnyTime))
	var out bytes.Buffer
	waiter := Waiter{Client: server.Connect(), Out: &out}
	ctx, stop, received := tracingtest.Trace(t)
	// A wait is told after a second, by a clock that ticks each second: a machine with much to do may miss one tick.
	_, err := waiter.Wait(ctx, Wanted{Repository: "me/blog"}, 5*time.Second)
	stop()
	if err == nil || !strings.Contains(err.Error(), "waiting for Flux to fetch the newest commit: Ready is False: GitOperationFailed: xxx") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(out.String(), "Flux to fetch the newest commit") {
		t.Errorf("the steps are not told:\n%s", out.String())
	}
	if tree := received.Tree(); !strings.Contains(tree, "gate Flux to fetch the newest commit: error: waiting for Flux") {
		t.Errorf("the wait is no span:\n%s", tree)
	}
	if text := out.String() + fmt.Sprint(err) + received.Text(); strings.Contains(text, secret[:4]) {
		t.Errorf("a part of the secret is told:\n%s", text)
	}
}
