package gates

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/test/kubetest"
	"tazlab.net/castle/ci/test/waittest"
)

const (
	oldRevision = "main@sha1:1111111111111111111111111111111111111111"
	newCommit   = "2222222222222222222222222222222222222222"
	newRevision = "main@sha1:" + newCommit
	laterCommit = "main@sha1:3333333333333333333333333333333333333333"
)

// flux writes what Flux's controllers would.
type flux struct{ *kubetest.Server }

func withFlux(t *testing.T) flux {
	t.Helper()
	server := flux{shared.Server(t)}
	server.InstallCRDs("flux-source", "gitrepositories")
	server.InstallCRDs("flux-kustomize", "kustomizations")
	t.Cleanup(func() {
		for _, name := range []string{"flux-system", "apps", "base"} {
			server.remove(name)
		}
	})
	return server
}

func (f flux) remove(name string) {
	ctx := context.Background()
	_ = f.Client().Resource(kustomizations).Namespace("flux-system").Delete(ctx, name, metav1.DeleteOptions{})
	_ = f.Client().Resource(gitRepositories).Namespace("flux-system").Delete(ctx, name, metav1.DeleteOptions{})
	_ = f.Client().Resource(deployments).Namespace("blog").Delete(ctx, "hugo-blog", metav1.DeleteOptions{})
}

const anyTime = "2026-01-01T00:00:00Z"

func (f flux) source(ready, reason, revision, handled string) {
	status := `, status: {observedGeneration: 1, lastHandledReconcileAt: "` + handled + `", conditions: [{type: Ready, status: "` + ready + `", reason: ` + reason +
		`, message: "failed to checkout and determine revision: authentication required", lastTransitionTime: "` + anyTime + `", observedGeneration: 1}]`
	if revision != "" {
		status += `, artifact: {revision: "` + revision + `", digest: "sha256:` + strings.Repeat("0", 64) + `", path: p, url: "http://source", lastUpdateTime: "` + anyTime + `"}`
	}
	f.Put(gitRepositories, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: flux-system, namespace: flux-system},
		spec: {url: "https://192.0.2.12/tazlab-k8s.git", interval: 1m}`+status+"}}")
}

func (f flux) kustomization(name, ready, revision string) {
	f.Put(kustomizations, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: `+name+`, namespace: flux-system},
		spec: {interval: 10m, path: ./clusters/sandbox, prune: true, sourceRef: {kind: GitRepository, name: flux-system}},
		status: {observedGeneration: 1, lastAppliedRevision: "`+revision+`", conditions: [{type: Ready, status: "`+ready+`", reason: Said,
		message: "said so", lastTransitionTime: "`+anyTime+`"}]}}`)
}

func (f flux) blog(image, available string) {
	f.Put(deployments, `{apiVersion: apps/v1, kind: Deployment,
		metadata: {name: hugo-blog, namespace: blog, labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux-system}},
		spec: {replicas: 1, selector: {matchLabels: {app: blog}}, template: {metadata: {labels: {app: blog}}, spec: {containers: [{name: blog, image: "`+image+`"}]}}}}`)
	now, err := f.Client().Resource(deployments).Namespace("blog").Get(context.Background(), "hugo-blog", metav1.GetOptions{})
	if err != nil {
		panic(err)
	}
	status := map[string]any{"observedGeneration": now.GetGeneration(), "replicas": int64(1), "updatedReplicas": int64(1), "unavailableReplicas": int64(1)}
	if available == "available" {
		status = map[string]any{
			"observedGeneration": now.GetGeneration(), "replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1),
			"conditions": []any{
				map[string]any{"type": "Available", "status": "True"},
				map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
			},
		}
	}
	now.Object["status"] = status
	if _, err := f.Client().Resource(deployments).Namespace("blog").UpdateStatus(context.Background(), now, metav1.UpdateOptions{}); err != nil {
		panic(err)
	}
}

func TestTheHandOverHoldsUntilEveryKustomizationHasTheSourcesRevision(t *testing.T) {
	server := withFlux(t)
	gate := watchGate(t, "gitops", Env{Kube: connect(t, server.Server)}, time.Minute)
	gate.Sees("does not exist yet")

	// flux-needs-secret: the cause stands in what is seen.
	server.source("False", "GitOperationFailed", "", "")
	gate.Sees("Ready is False: GitOperationFailed: failed to checkout and determine revision: authentication required")

	server.source("True", "Succeeded", newRevision, "")
	gate.Sees("Kustomization flux-system does not exist yet")
	server.kustomization("flux-system", "True", oldRevision)
	gate.Sees("flux-system: ready at " + oldRevision)
	server.kustomization("apps", "False", "")
	server.kustomization("flux-system", "True", newRevision)
	gate.Sees("1 of 2 ready; apps: Ready is False: Said: said so at " + newRevision)
	gate.StaysShut(300 * time.Millisecond)
	server.kustomization("apps", "True", newRevision)
	gate.Opens()
}

func TestAFailedHandOverNamesTheCause(t *testing.T) {
	server := withFlux(t)
	server.source("False", "GitOperationFailed", "", "")
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

// asked waits until an object carries a request to reconcile other than the last one, and returns it.
func (f flux) asked(t *testing.T, kube *Kube, kustomization bool, last string) string {
	t.Helper()
	target := Target{Resource: gitRepositories, Namespace: "flux-system", Name: "flux-system"}
	if kustomization {
		target.Resource = kustomizations
	}
	var token string
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := kube.Follow(ctx, []Target{target}, func(view View) (string, bool, error) {
		if len(view[0]) > 0 {
			token = view[0][0].GetAnnotations()[requestedAt]
		}
		return "", token != "" && token != last, nil
	}, func(string) {})
	if err != nil {
		t.Fatalf("nobody asked for a reconcile: %v", err)
	}
	return token
}

// rolling is a wait for a rollout whose outcome can be looked at when it has ended.
type rolling struct {
	*waittest.Wait
	seen Seen
}

func beginRollout(t *testing.T, client *Kube, wanted Wanted) *rolling {
	r := &rolling{}
	r.Wait = waittest.Begin(t, func(ctx context.Context, saw func(string)) (err error) {
		r.seen, err = WaitRollout(ctx, client, wanted, Options{Timeout: time.Minute, Events: func(event Event) {
			if event.Phase == PhaseWaiting {
				saw(event.Seen)
			}
		}})
		return err
	})
	return r
}

var ofNew = Wanted{Revision: newCommit, Image: "registry/blog:new"}

func TestARolloutIsAskedForAndSeenThrough(t *testing.T) {
	server := withFlux(t)
	kube := connect(t, server.Server)
	server.source("True", "Succeeded", oldRevision, "")
	server.kustomization("flux-system", "True", oldRevision)
	server.kustomization("apps", "True", oldRevision)
	server.blog("registry/blog:old", "available")
	rollout := beginRollout(t, kube, ofNew)

	server.asked(t, kube, false, "")
	rollout.Sees("at " + oldRevision + ", not yet at " + newCommit)
	server.source("True", "Succeeded", newRevision, "")
	server.asked(t, kube, true, "")
	rollout.Sees("Kustomization apps: ready at " + oldRevision)
	server.blog("registry/blog:new", "not yet")
	rollout.StaysShut(300 * time.Millisecond)
	server.blog("registry/blog:new", "available")
	if took := rollout.Opens(); took > time.Second {
		t.Errorf("noticed %s after the pod was available", took)
	}
	if want := (Seen{newRevision, "registry/blog:new"}); rollout.seen != want {
		t.Errorf("saw %v, want %v", rollout.seen, want)
	}
}

func TestARolloutThatWasReplacedEndsTheWait(t *testing.T) {
	server := withFlux(t)
	kube := connect(t, server.Server)
	server.source("True", "Succeeded", oldRevision, "")
	server.kustomization("flux-system", "True", oldRevision)
	server.kustomization("apps", "True", oldRevision)
	server.blog("registry/blog:old", "available")
	rollout := beginRollout(t, kube, ofNew)

	token := server.asked(t, kube, false, "")
	server.source("True", "Succeeded", laterCommit, token)
	rollout.Sees("at " + laterCommit + ", which came after " + newCommit)
	server.blog("registry/blog:newer", "available")
	rollout.StaysShut(300 * time.Millisecond)
	server.kustomization("apps", "True", laterCommit)
	err := rollout.Fails()
	if _, ok := errors.AsType[*Impossible](err); !ok || !strings.Contains(err.Error(), "the image is registry/blog:newer") {
		t.Errorf("the error is %T %v, want an *Impossible that names the other image", err, err)
	}
}

func TestASuspendedSourceEndsTheWait(t *testing.T) {
	server := withFlux(t)
	kube := connect(t, server.Server)
	server.source("True", "Succeeded", oldRevision, "")
	server.kustomization("flux-system", "True", oldRevision)
	server.Put(gitRepositories, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: flux-system, namespace: flux-system},
		spec: {url: "https://192.0.2.12/tazlab-k8s.git", interval: 1m, suspend: true}}`)
	if err := beginRollout(t, kube, ofNew).Fails(); !strings.Contains(err.Error(), "flux resume source git flux-system") {
		t.Errorf("the error does not say how to go on: %v", err)
	}
}

func TestABlogGateWantsTheExactImage(t *testing.T) {
	server := withFlux(t)
	server.blog("registry/blog:old", "available")
	gate := watchGate(t, "blog", Env{Kube: connect(t, server.Server), Image: "registry/blog:new"}, time.Minute)
	gate.Sees("its image is registry/blog:old, not registry/blog:new")
	server.blog("registry/blog:new", "available")
	gate.Opens()
}

func TestPodsOfAnOlderGenerationAreNotAvailable(t *testing.T) {
	deployment := func(change func(spec, status map[string]any)) *unstructured.Unstructured {
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
		if seen, ok := available(deployment(test.change)); ok != test.want {
			t.Errorf("%s: %v (%s), want %v", name, ok, seen, test.want)
		}
	}
}
