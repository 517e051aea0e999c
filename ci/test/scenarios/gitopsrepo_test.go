//go:build linux

package scenarios

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/gitops/gitopsrepo"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/sopstest"
)

// chartsAddress is where the stand-ins are served: at the Git server's address, which is there.
const chartsAddress = "192.168.77.12:8879"

// notFollowed leaves the repository that the cluster follows to the test.
var notFollowed = change{file: "live/sandbox/world.yaml", from: "repository: tazlab-k8s", to: "repository: not-followed"}

// renders the cluster's repository with all that is usual, but for what the options say.
func (w *world) renders(options gitopsrepo.Options) gitopsrepo.Files {
	w.t.Helper()
	options.Domain, options.ACMEEmail, options.BlogImage = "example.org", "me@example.org", "ghcr.io/me/blog:blog-1a2b3c4"
	options.ChartMirror, options.BackupBucket, options.BackupEndpoint = "http://"+chartsAddress, "backups", "https://s3.example.org"
	files, err := gitopsrepo.Render(gitopsrepo.Request{Folder: w.live, Options: options})
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

// remote is the folder of the repository that the cluster follows.
func (w *world) remote() string { return filepath.Join(w.dir(), "git", "tazlab-k8s.git") }

// follows serves charts, renders the cluster's repository and pushes it.
func (w *world) follows(options gitopsrepo.Options) gitopsrepo.Files {
	w.t.Helper()
	w.serveCharts(chartsAddress)
	files := w.renders(options)
	if err := gitserver.InitBare(w.t.Context(), w.remote(), "main"); err != nil {
		w.t.Fatal(err)
	}
	if _, err := files.Push(w.t.Context(), gitopsrepo.Remote{URL: w.remote(), Branch: "main", AuthorName: "Me", AuthorEmail: "me@example.org"}); err != nil {
		w.t.Fatal(err)
	}
	return files
}

// TestARenderedRepositoryIsAllThatAClusterNeeds: the repository that gitops-repo renders is pushed into an empty remote, and create
// brings a cluster up that follows it. Flux, External Secrets Operator, MetalLB and the API server with its pod security are the
// real ones; the charts are stand-ins.
func TestARenderedRepositoryIsAllThatAClusterNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0",
		notFollowed,
		change{file: "live/sandbox/world.yaml", from: "/workloads:\n", to: "/workloads:\n" +
			"            REGISTRY_PULL_USERNAME: robot\n            REGISTRY_PULL_PASSWORD: 'a\"b'\n"},
	)
	w.on()
	w.follows(gitopsrepo.Options{})

	// create ends when every Kustomization is ready at the commit that was pushed.
	w.castle("create").succeeds()

	k := w.kubernetes(w.unsealed("kubeconfig"))
	list, err := k.dynamic.Resource(flux.Kustomizations).Namespace("flux-system").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 10 {
		t.Errorf("%d Kustomizations, %v", len(list.Items), err)
	}
	// What nothing waits for comes all the same.
	for _, release := range []string{"traefik", "cert-manager", "prometheus", "grafana", "dagger"} {
		w.until(2*time.Minute, "HelmRelease "+release, func() (string, bool) {
			return ready(k.get(flux.HelmReleases, flux.Namespace, release))
		})
	}
	service := k.get(schema.GroupVersionResource{Version: "v1", Resource: "services"}, "traefik", "traefik")
	ingress, _, _ := unstructured.NestedSlice(service.Object, "status", "loadBalancer", "ingress")
	if len(ingress) != 1 || ingress[0].(map[string]any)["ip"] != "192.168.77.239" {
		t.Errorf("Traefik's addresses are %v", ingress)
	}
	w.until(2*time.Minute, "the blog's pods", func() (string, bool) {
		blog := k.get(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "blog", "hugo-blog")
		available, _, _ := unstructured.NestedInt64(blog.Object, "status", "availableReplicas")
		return fmt.Sprintf("%d of them are available", available), available == 2
	})
	if pull := k.pullSecret(); pull["ghcr.io"] != [3]string{"robot", `a"b`, "cm9ib3Q6YSJi"} {
		t.Errorf("the pull secret is %v", pull)
	}
}

// TestARenderedRepositoryLivesOnSOPSAlone: without Infisical the repository's secrets come encrypted in it, as the user adds them.
// And what leaves it leaves the cluster, namespaces aside.
func TestARenderedRepositoryLivesOnSOPSAlone(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "none", "0", notFollowed)
	w.on() // makes the Git server's authority
	w.off(syscall.SIGTERM)
	w.leaveInfisical()
	w.on()
	w.castle("secrets-init", "--out="+w.live).succeeds()
	before := w.follows(gitopsrepo.Options{})
	w.castle("create").succeeds()
	k := w.kubernetes(w.unsealed("kubeconfig"))
	k.get(flux.Kustomizations, "flux-system", "dagger")

	after := w.renders(gitopsrepo.Options{Without: []string{gitopsrepo.Dagger}})
	const list = "secrets/sandbox/kustomization.yaml"
	after[list] = bytes.Replace(after[list], []byte("resources: []"), []byte("resources:\n  - registry.sops.yaml"), 1)
	recipient := regexp.MustCompile(`age1\w+`).FindString(string(after[".sops.yaml"]))
	after["secrets/sandbox/registry.sops.yaml"] = sopstest.Manifest(t, recipient, `apiVersion: v1
kind: Secret
metadata:
  name: registry
  namespace: blog
type: kubernetes.io/dockerconfigjson
stringData:
  .dockerconfigjson: '{"auths": {"ghcr.io": {"username": "robot", "password": "secret", "auth": "cm9ib3Q6c2VjcmV0"}}}'
`)
	commit := gitserver.Commit{Message: "Add a secret, leave a part out"}
	changed := fstest.MapFS{}
	for name, text := range after {
		changed[name] = &fstest.MapFile{Data: text, Mode: 0o644}
	}
	for name := range before {
		if after[name] == nil {
			commit.Remove = append(commit.Remove, name)
		}
	}
	commit.Files = changed
	if _, err := gitserver.Seed(t.Context(), w.remote(), "main", commit); err != nil {
		t.Fatal(err)
	}
	k.reconcile()
	w.until(2*time.Minute, "the pull secret is there and the engine is gone", func() (string, bool) {
		_, missing := k.typed.CoreV1().Secrets("blog").Get(t.Context(), "registry", metav1.GetOptions{})
		_, there := k.dynamic.Resource(flux.HelmReleases).Namespace(flux.Namespace).Get(t.Context(), "dagger", metav1.GetOptions{})
		return fmt.Sprintf("secret: %v, release: %v", missing, there), missing == nil && apierrors.IsNotFound(there)
	})
	if pull := k.pullSecret(); pull["ghcr.io"] != [3]string{"robot", "secret", "cm9ib3Q6c2VjcmV0"} {
		t.Errorf("the pull secret is %v", pull)
	}
	if _, err := k.typed.CoreV1().Namespaces().Get(t.Context(), "dagger", metav1.GetOptions{}); err != nil {
		t.Errorf("the namespace of a part that was left out: %v", err)
	}
}

// pullSecret reads the blog's image pull secret: user, password and both as a header has them, by registry.
func (k kube) pullSecret() map[string][3]string {
	t := k.world.t
	t.Helper()
	secret, err := k.typed.CoreV1().Secrets("blog").Get(t.Context(), "registry", metav1.GetOptions{})
	if err != nil || secret.Type != corev1.SecretTypeDockerConfigJson {
		t.Fatalf("%v, a %s", err, secret.Type)
	}
	var config struct {
		Auths map[string]struct{ Username, Password, Auth string }
	}
	if err := json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config); err != nil {
		t.Fatal(err)
	}
	found := map[string][3]string{}
	for registry, auth := range config.Auths {
		found[registry] = [3]string{auth.Username, auth.Password, auth.Auth}
	}
	return found
}

// ready says what an object's condition Ready says.
func ready(object *unstructured.Unstructured) (string, bool) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if c := condition.(map[string]any); c["type"] == "Ready" {
			message, _ := c["message"].(string)
			return message, c["status"] == "True"
		}
	}
	return "no condition Ready", false
}
