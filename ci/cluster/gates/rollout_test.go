package gates

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/test/kubetest"
)

// settledFlux is a Flux at rest at the old revision, with the blog available.
func settledFlux(t *testing.T, image string) (flux, *Kube) {
	server := withFlux(t)
	server.source("True", "Succeeded", oldRevision, "")
	server.kustomization("flux-system", "True", oldRevision)
	server.kustomization("apps", "True", oldRevision)
	server.blog(image, "available")
	return server, connect(t, server.Server)
}

func TestAnImageThatRanBeforeWaitsForTheRevisionToBeApplied(t *testing.T) {
	server, kube := settledFlux(t, "registry/blog:new")
	rollout := beginRollout(t, kube, ofNew)
	server.asked(t, kube, false, "")
	server.source("True", "Succeeded", newRevision, "")
	rollout.Sees("Kustomization apps: ready at " + oldRevision)
	rollout.StaysShut(300 * time.Millisecond)
	server.kustomization("apps", "True", newRevision)
	rollout.Opens()
}

func TestTheHealthOfAnotherAppHoldsNoRolloutUp(t *testing.T) {
	server, kube := settledFlux(t, "registry/blog:new")
	rollout := beginRollout(t, kube, ofNew)
	server.asked(t, kube, false, "")
	server.source("True", "Succeeded", newRevision, "")
	unhealthy := func(attempted string) {
		server.Put(kustomizations, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: apps, namespace: flux-system},
			spec: {interval: 10m, path: ./apps, prune: true, sourceRef: {kind: GitRepository, name: flux-system}},
			status: {observedGeneration: 1, lastAppliedRevision: "`+oldRevision+`", lastAttemptedRevision: "`+attempted+`", conditions: [{type: Ready, status: "False",
			reason: HealthCheckFailed, message: "Deployment/other not ready", lastTransitionTime: "`+anyTime+`"}]}}`)
	}
	unhealthy(oldRevision)
	rollout.Sees("HealthCheckFailed: Deployment/other not ready")
	rollout.StaysShut(300 * time.Millisecond)
	unhealthy(newRevision)
	rollout.Opens()
}

func TestWithoutACommitTheNewestOneIsFetchedFirst(t *testing.T) {
	server, kube := settledFlux(t, "registry/blog:old")
	rollout := beginRollout(t, kube, Wanted{})
	token := server.asked(t, kube, false, "")
	rollout.Sees("at " + oldRevision + ", has not looked for a newer commit yet")
	rollout.StaysShut(300 * time.Millisecond)
	server.source("True", "Succeeded", newRevision, token)
	rollout.Sees("Kustomization apps: ready at " + oldRevision)
	server.blog("registry/blog:new", "available")
	rollout.StaysShut(300 * time.Millisecond)
	server.kustomization("apps", "True", newRevision)
	rollout.Opens()
	if want := (Seen{newRevision, "registry/blog:new"}); rollout.seen != want {
		t.Errorf("saw %v, want %v", rollout.seen, want)
	}
}

func TestAnotherCommitIsNotTakenForTheWantedOneWithoutItsImage(t *testing.T) {
	server, kube := settledFlux(t, "registry/blog:old")
	rollout := beginRollout(t, kube, Wanted{Revision: newCommit})
	token := server.asked(t, kube, false, "")
	server.source("True", "Succeeded", laterCommit, token)
	if err := rollout.Fails(); !strings.Contains(err.Error(), "it has fetched "+laterCommit+" instead") {
		t.Errorf("the error does not name the other commit: %v", err)
	}
}

func TestAKustomizationIsAskedAgainWhenItsDependencyIsReady(t *testing.T) {
	server, kube := settledFlux(t, "registry/blog:old")
	waiting := func(applied string) {
		server.kustomization("base", "True", applied)
		server.Put(kustomizations, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: apps, namespace: flux-system},
			spec: {interval: 10m, path: ./apps, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, dependsOn: [{name: base}]},
			status: {observedGeneration: 1, lastAppliedRevision: "`+oldRevision+`", conditions: [{type: Ready, status: "False",
			reason: DependencyNotReady, message: "dependency 'flux-system/base' revision is not up to date", lastTransitionTime: "`+anyTime+`"}]}}`)
	}
	requested := func() string {
		object, err := server.Client().Resource(kustomizations).Namespace("flux-system").Get(t.Context(), "apps", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return object.GetAnnotations()[requestedAt]
	}
	rollout := beginRollout(t, kube, ofNew)
	server.asked(t, kube, false, "")
	waiting(oldRevision)
	server.source("True", "Succeeded", newRevision, "")
	rollout.Sees("DependencyNotReady")
	rollout.StaysShut(300 * time.Millisecond)
	if requested() != "" {
		t.Error("apps was asked although base is not at the revision")
	}
	waiting(newRevision)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for requested() == "" {
		if ctx.Err() != nil {
			t.Fatal("apps was not asked again when base was ready")
		}
		time.Sleep(20 * time.Millisecond)
	}
	server.blog("registry/blog:new", "available")
	rollout.Opens()
}

func TestADeliveryMayHaveOtherNames(t *testing.T) {
	server, kube := settledFlux(t, "registry/blog:old")
	wanted := ofNew
	wanted.Delivery = Delivery{Deployment: Object{"web", "site"}}
	rollout := beginRollout(t, kube, wanted)
	server.asked(t, kube, false, "")
	server.source("True", "Succeeded", newRevision, "")
	rollout.Sees("does not exist yet")
	server.blog("registry/blog:new", "available")
	rollout.StaysShut(300 * time.Millisecond)

	err := func() error {
		wanted := ofNew
		wanted.Delivery = Delivery{Source: Object{"team", "repo"}}
		_, err := WaitRollout(t.Context(), kube, wanted, Options{Timeout: 500 * time.Millisecond})
		return err
	}()
	if err == nil || !strings.Contains(err.Error(), "gitrepositories repo does not exist yet") || !strings.Contains(err.Error(), "kubectl -n team describe gitrepository repo") {
		t.Errorf("the error does not name the other source: %v", err)
	}
	if conditions, err := Gate("blog", Env{Kube: kube, Deployment: wanted.Deployment}); err != nil || conditions[0].Name != "Deployment site in web" {
		t.Errorf("the gate waits for %v, %v", conditions, err)
	}
}

func TestOneImageHasSeveralNames(t *testing.T) {
	const digest = "@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	for _, test := range []struct {
		has, wanted string
		same        bool
	}{
		{"docker.io/tazzo/blog:1", "tazzo/blog:1", true},
		{"tazzo/blog:1", "index.docker.io/tazzo/blog:1", true},
		{"tazzo/blog:1" + digest, "tazzo/blog:1" + digest, true},
		{"tazzo/blog:1", "tazzo/blog:2", false},
		{"tazzo/blog:1", "quay.io/tazzo/blog:1", false},
		{"tazzo/blog:1", "tazzo/blog:1" + digest, false},
		{"", "tazzo/blog:1", false},
	} {
		if hasImage([]string{"sidecar:1", test.has}, test.wanted) != test.same {
			t.Errorf("%q and %q: same is not %v", test.has, test.wanted, test.same)
		}
	}
}

func TestAnImageWithoutATagIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	for image, want := range map[string]string{
		"tazzo/blog":             "has no tag",
		"localhost:5000/me/blog": "has no tag",
		"Blog:1":                 "is no image",
	} {
		_, err := WaitRollout(t.Context(), &Kube{}, Wanted{Image: image}, Options{Timeout: time.Second})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", image, err, want)
		}
	}
	for _, image := range []string{"tazzo/blog:latest", "tazzo/blog:1@sha256:1111111111111111111111111111111111111111111111111111111111111111"} {
		if err := CheckImage(image); err != nil {
			t.Error(err)
		}
	}
}

func TestAnObjectIsNamedWithItsNamespace(t *testing.T) {
	if object, err := ParseObject("blog/hugo-blog"); err != nil || object != (Object{"blog", "hugo-blog"}) || object.String() != "blog/hugo-blog" {
		t.Errorf("%v %v", object, err)
	}
	for _, text := range []string{"", "blog", "/blog", "blog/", "a/b/c"} {
		if _, err := ParseObject(text); err == nil || !strings.Contains(err.Error(), "want namespace/name") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// kubeconfig is one for the server, its user as given.
func kubeconfig(server *kubetest.Server, user string) []byte {
	return fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: s, user: u}}],
		clusters: [{name: s, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: u, user: {%s}}]}`,
		server.Host, base64.StdEncoding.EncodeToString(server.CA()), user)
}

func TestAKubeconfigConnectsWithoutAFile(t *testing.T) {
	server := shared.Server(t)
	cert, key := server.Certificate("somebody", "system:masters")
	user := fmt.Sprintf("client-certificate-data: %s, client-key-data: %s", base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key))
	kube, err := KubeFromKubeconfig(kubeconfig(server, user))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.dynamic.Resource(nodes).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func TestAKubeconfigThatNeedsAnotherMachineIsRefused(t *testing.T) {
	server := shared.Server(t)
	for user, want := range map[string]string{
		"exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}":       "from the program aws",
		"client-certificate: /home/me/crt, client-key: /home/me/key":              "names the file /home/me/crt",
		"tokenFile: /home/me/token":                                               "names the file /home/me/token",
		"auth-provider: {name: gcp}":                                              "from the provider gcp",
		"token: canary-31ab, client-certificate-data: bm90aGluZw==, nonsense: [{": "cannot be read",
	} {
		_, err := KubeFromKubeconfig(kubeconfig(server, user))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want %q", user, err, want)
		}
	}
	if _, err := KubeFromKubeconfig([]byte("{apiVersion: v1, kind: Config}")); err == nil || !strings.Contains(err.Error(), "current context") {
		t.Errorf("without a context: %v", err)
	}
}
