//go:build linux

package scenarios

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/factory/gitopsrepo"
)

var helmReleases = schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}

// TestARenderedRepositoryIsAllThatAClusterNeeds: the repository that gitops-repo renders is pushed into an empty remote, and create
// brings a cluster up that follows it. Flux, External Secrets Operator, MetalLB and the API server with its pod security are the
// real ones; the charts are stand-ins.
func TestARenderedRepositoryIsAllThatAClusterNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0",
		change{file: "live/sandbox/world.yaml", from: "repository: tazlab-k8s", to: "repository: not-followed"},
		change{file: "live/sandbox/world.yaml", from: "            GITOPS_USERNAME: flux\n", to: "            GITOPS_USERNAME: flux\n" +
			"            REGISTRY_PULL_USERNAME: robot\n            REGISTRY_PULL_PASSWORD: 'a\"b'\n"},
	)
	w.on()
	const charts = "192.168.77.12:8879" // where the Git server is, so that the address is there
	w.serveCharts(charts)

	files, err := gitopsrepo.Render(gitopsrepo.Request{Folder: w.live, Options: gitopsrepo.Options{
		Domain: "example.org", ACMEEmail: "me@example.org", BlogImage: "registry.invalid/me/blog:blog-1a2b3c4", ChartMirror: "http://" + charts,
		BackupBucket: "backups", BackupEndpoint: "https://s3.example.org",
	}})
	if err != nil {
		t.Fatal(err)
	}
	remote := filepath.Join(w.dir(), "git", "tazlab-k8s.git")
	if err := gitserver.InitBare(t.Context(), remote, "main"); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Push(t.Context(), gitopsrepo.Remote{URL: remote, Branch: "main", AuthorName: "Me", AuthorEmail: "me@example.org"}); err != nil {
		t.Fatal(err)
	}

	// create ends when every Kustomization is ready at the commit that was pushed.
	w.castle("create").succeeds()

	k := w.kubernetes(w.unsealed("kubeconfig"))
	list, err := k.dynamic.Resource(kustomizations).Namespace("flux-system").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 11 {
		t.Errorf("%d Kustomizations, %v", len(list.Items), err)
	}
	// What nothing waits for comes all the same.
	for _, release := range []struct{ namespace, name string }{
		{"traefik", "traefik"}, {"cert-manager", "cert-manager"}, {"flux-system", "notification-controller"},
		{"monitoring", "prometheus"}, {"monitoring", "grafana"}, {"dagger", "dagger"},
	} {
		w.until(2*time.Minute, "HelmRelease "+release.name, func() (string, bool) {
			return ready(k.get(helmReleases, release.namespace, release.name))
		})
	}
	service := k.get(schema.GroupVersionResource{Version: "v1", Resource: "services"}, "traefik", "traefik")
	ingress, _, _ := unstructured.NestedSlice(service.Object, "status", "loadBalancer", "ingress")
	if len(ingress) != 1 || ingress[0].(map[string]any)["ip"] != "192.168.77.239" {
		t.Errorf("Traefik's addresses are %v", ingress)
	}
	blog := k.get(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "blog", "hugo-blog")
	if available, _, _ := unstructured.NestedInt64(blog.Object, "status", "availableReplicas"); available != 2 {
		t.Errorf("%d pods of the blog are available", available)
	}
	secret, err := k.typed.CoreV1().Secrets("blog").Get(t.Context(), "registry", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pull := dockerConfig(t, secret.Data[".dockerconfigjson"])
	if string(secret.Type) != "kubernetes.io/dockerconfigjson" || pull["registry.invalid"] != [3]string{"robot", `a"b`, "cm9ib3Q6YSJi"} {
		t.Errorf("the pull secret is a %s of %v", secret.Type, pull)
	}
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

// dockerConfig reads an image pull secret: user, password and both as a header has them, by registry.
func dockerConfig(t *testing.T, text []byte) map[string][3]string {
	t.Helper()
	var config struct {
		Auths map[string]struct{ Username, Password, Auth string }
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	found := map[string][3]string{}
	for registry, auth := range config.Auths {
		found[registry] = [3]string{auth.Username, auth.Password, auth.Auth}
	}
	return found
}
