// Package fluxtest writes into a test's cluster what Flux's controllers would: a source, Kustomizations, and the blog that
// one of them applies.
package fluxtest

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/test/kubetest"
)

// Revisions of the source, as Flux writes them, in the order in which they are pushed.
const (
	OldRevision   = "main@sha1:1111111111111111111111111111111111111111"
	NewCommit     = "2222222222222222222222222222222222222222"
	NewRevision   = "main@sha1:" + NewCommit
	LaterRevision = "main@sha1:3333333333333333333333333333333333333333"
)

// AnyTime stands where Flux's CRDs demand a time.
const AnyTime = "2026-01-01T00:00:00Z"

// Flux is a server that knows Flux's kinds, and has no controllers.
type Flux struct {
	*kubetest.Server
	t testing.TB
}

// Install makes Flux's kinds known; what is written with the names of castle's own repositories goes with the test.
func Install(t testing.TB, shared *kubetest.Shared) *Flux {
	t.Helper()
	server := &Flux{shared.Server(t), t}
	server.InstallCRDs("flux-source", "gitrepositories")
	server.InstallCRDs("flux-kustomize", "kustomizations")
	t.Cleanup(func() {
		for _, name := range []string{"flux-system", "apps", "base"} {
			server.remove(name)
		}
	})
	return server
}

// Connect connects to the server.
func (f *Flux) Connect() *kube.Client {
	f.t.Helper()
	client, err := kube.FromEnv(f.Getenv)
	if err != nil {
		f.t.Fatal(err)
	}
	return client
}

func (f *Flux) remove(name string) {
	ctx := context.Background()
	_ = f.Client().Resource(flux.Kustomizations).Namespace("flux-system").Delete(ctx, name, metav1.DeleteOptions{})
	_ = f.Client().Resource(flux.GitRepositories).Namespace("flux-system").Delete(ctx, name, metav1.DeleteOptions{})
	_ = f.Client().Resource(kube.Deployments).Namespace("blog").Delete(ctx, "hugo-blog", metav1.DeleteOptions{})
}

// PutSource writes the GitRepository: its condition Ready with a reason, the revision of its artifact, none where that is empty,
// and the request to reconcile that it has handled.
func (f *Flux) PutSource(ready, reason, revision, handled string) {
	status := `, status: {observedGeneration: 1, lastHandledReconcileAt: "` + handled + `", conditions: [{type: Ready, status: "` + ready + `", reason: ` + reason +
		`, message: "failed to checkout and determine revision: authentication required", lastTransitionTime: "` + AnyTime + `", observedGeneration: 1}]`
	if revision != "" {
		status += `, artifact: {revision: "` + revision + `", digest: "sha256:` + strings.Repeat("0", 64) + `", path: p, url: "http://source", lastUpdateTime: "` + AnyTime + `"}`
	}
	f.Put(flux.GitRepositories, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: flux-system, namespace: flux-system},
		spec: {url: "https://192.0.2.12/tazlab-k8s.git", interval: 1m}`+status+"}}")
}

// PutKustomization writes a Kustomization that takes from the source, its condition Ready and the revision that it has applied.
func (f *Flux) PutKustomization(name, ready, revision string) {
	f.Put(flux.Kustomizations, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: `+name+`, namespace: flux-system},
		spec: {interval: 10m, path: ./clusters/sandbox, prune: true, sourceRef: {kind: GitRepository, name: flux-system}},
		status: {observedGeneration: 1, lastAppliedRevision: "`+revision+`", conditions: [{type: Ready, status: "`+ready+`", reason: Said,
		message: "said so", lastTransitionTime: "`+AnyTime+`"}]}}`)
}

// PutBlog writes the blog's Deployment, applied by the Kustomization apps; its pod is there when available is "available".
func (f *Flux) PutBlog(image, available string) {
	f.t.Helper()
	f.Put(kube.Deployments, `{apiVersion: apps/v1, kind: Deployment,
		metadata: {name: hugo-blog, namespace: blog, labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux-system}},
		spec: {replicas: 1, selector: {matchLabels: {app: blog}}, template: {metadata: {labels: {app: blog}}, spec: {containers: [{name: blog, image: "`+image+`"}]}}}}`)
	now, err := f.Client().Resource(kube.Deployments).Namespace("blog").Get(context.Background(), "hugo-blog", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
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
	if _, err := f.Client().Resource(kube.Deployments).Namespace("blog").UpdateStatus(context.Background(), now, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// Asked waits until somebody has asked Flux to reconcile the source, or the first Kustomization, and returns the request.
func (f *Flux) Asked(client *kube.Client, kustomization bool) string {
	f.t.Helper()
	target := kube.Target{Resource: flux.GitRepositories, Namespace: "flux-system", Name: "flux-system"}
	if kustomization {
		target.Resource = flux.Kustomizations
	}
	var token string
	ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
	defer cancel()
	err := client.Follow(ctx, []kube.Target{target}, func(view kube.View) (string, bool, error) {
		if len(view[0]) > 0 {
			token = view[0][0].GetAnnotations()[flux.RequestedAt]
		}
		return "", token != "", nil
	}, func(string) {})
	if err != nil {
		f.t.Fatalf("nobody asked for a reconcile: %v", err)
	}
	return token
}
