//go:build linux

package kube

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"tazlab.net/castle/ci/base/gitserver"
)

const fluxOverlay = `
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: flux-system
resources: [access.yaml, source-controller/crd, source-controller/manager, kustomize-controller/crd, kustomize-controller/manager,
  helm-controller/crd, helm-controller/manager]
images:
  - {name: fluxcd/source-controller, newName: ghcr.io/fluxcd/source-controller}
  - {name: fluxcd/kustomize-controller, newName: ghcr.io/fluxcd/kustomize-controller}
  - {name: fluxcd/helm-controller, newName: ghcr.io/fluxcd/helm-controller}
`

const fluxAccess = `
apiVersion: v1
kind: Namespace
metadata: {name: flux-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: flux}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: default, namespace: flux-system}]
`

const blog = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: blog, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: blog}}
  template:
    metadata: {labels: {app: blog}}
    spec: {containers: [{name: blog, image: "registry.example/blog:TAG"}]}
`

// installFlux installs the controllers as their own projects declare them.
func installFlux(w *world, found map[string]string) {
	w.t.Helper()
	folder := w.t.TempDir()
	for _, name := range []string{"source-controller", "kustomize-controller", "helm-controller"} {
		if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Join(filepath.Dir(found[name]), "config"))); err != nil {
			w.t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"kustomization.yaml": fluxOverlay, "access.yaml": fluxAccess} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	rendered, err := exec.CommandContext(w.t.Context(), found["kubectl"], "kustomize", folder).Output()
	if err != nil {
		w.t.Fatalf("kubectl kustomize: %v", err)
	}
	w.apply(string(rendered))
}

// serveGit serves a repository at an address of the subnet, and returns what commits to it.
func serveGit(w *world) (commit func(tag string) string) {
	w.t.Helper()
	root := w.t.TempDir()
	bare := filepath.Join(root, "tazlab-k8s.git")
	if err := gitserver.InitBare(w.t.Context(), bare, "main"); err != nil {
		w.t.Fatal(err)
	}
	handler, err := gitserver.New(gitserver.Options{Root: root, Token: "test", AnonymousRead: true})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.network.AddAddress(netip.MustParseAddr("192.168.77.12")); err != nil {
		w.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "192.168.77.12:8080")
	if err != nil {
		w.t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	w.t.Cleanup(func() { server.Close() })
	return func(tag string) string {
		w.t.Helper()
		sha, err := gitserver.Seed(w.t.Context(), bare, "main", gitserver.Commit{
			Files: fstest.MapFS{"cluster/blog.yaml": {Data: []byte(strings.ReplaceAll(blog, "TAG", tag))}},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		return sha
	}
}

func TestTheRealFluxAppliesWhatGitHolds(t *testing.T) {
	found := programs(t, "kubernetes", "source-controller", "kustomize-controller", "helm-controller")
	w := newWorld(t, map[string]string{
		ImageSourceController: found["source-controller"], ImageKustomizeController: found["kustomize-controller"],
		ImageHelmController: found["helm-controller"],
	}, quick(t, nil))
	client := w.start()
	w.coreDNS(client) // one controller asks the other by its name
	commit := serveGit(w)
	first := commit("1")
	installFlux(w, found)
	declared, err := os.ReadFile("testdata/flux.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w.apply(string(declared))
	w.available(client, "flux-system", "source-controller", time.Minute)
	w.available(client, "flux-system", "kustomize-controller", time.Minute)
	w.reconciled(first)
	w.available(client, "default", "blog", time.Second)

	second := commit("2")
	w.reconciled(second)
	deployed, err := client.AppsV1().Deployments("default").Get(t.Context(), "blog", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if image := deployed.Spec.Template.Spec.Containers[0].Image; image != "registry.example/blog:2" {
		t.Errorf("the cluster runs %s", image)
	}
	w.available(client, "default", "blog", time.Second)
}

func (w *world) reconciled(sha string) {
	w.t.Helper()
	kustomizations := dynamic.NewForConfigOrDie(w.Admin()).Resource(schema.GroupVersionResource{
		Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations",
	}).Namespace("flux-system")
	w.eventually(time.Minute, "Flux has applied "+sha[:7], func(ctx context.Context) error {
		object, err := kustomizations.Get(ctx, "cluster", metav1.GetOptions{})
		if err != nil {
			return err
		}
		applied, _, _ := unstructured.NestedString(object.Object, "status", "lastAppliedRevision")
		if !strings.HasSuffix(applied, sha) {
			return fmt.Errorf("applied %q, status %v", applied, object.Object["status"])
		}
		return nil
	})
}
