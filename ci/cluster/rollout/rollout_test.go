package rollout

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/test/fluxtest"
	"tazlab.net/castle/ci/test/waittest"
)

// rolling is a wait for a rollout whose outcome can be looked at when it has ended.
type rolling struct {
	*waittest.Wait
	seen Seen
}

func beginRollout(t *testing.T, client *kube.Client, wanted Wanted) *rolling {
	r := &rolling{}
	r.Wait = waittest.Begin(t, func(ctx context.Context, saw func(string)) (err error) {
		r.seen, err = Wait(ctx, client, wanted, gates.Options{Timeout: time.Minute, Events: func(event gates.Event) {
			if event.Phase == gates.PhaseWaiting {
				saw(event.Seen)
			}
		}})
		return err
	})
	return r
}

var ofNew = Wanted{Revision: fluxtest.NewCommit, Image: "registry/blog:new"}

func TestARolloutIsAskedForAndSeenThrough(t *testing.T) {
	server, client := settledFlux(t, "registry/blog:old")
	rollout := beginRollout(t, client, ofNew)

	server.Asked(client, false)
	rollout.Sees("at " + fluxtest.OldRevision + ", not yet at " + fluxtest.NewCommit)
	server.PutSource("True", "Succeeded", fluxtest.NewRevision, "")
	server.Asked(client, true)
	rollout.Sees("Kustomization apps: ready at " + fluxtest.OldRevision)
	server.PutBlog("registry/blog:new", "not yet")
	rollout.StaysShut(300 * time.Millisecond)
	server.PutBlog("registry/blog:new", "available")
	if took := rollout.Opens(); took > 10*time.Second {
		t.Errorf("noticed %s after the pod was available", took)
	}
	if want := (Seen{fluxtest.NewRevision, "registry/blog:new", kube.Object{Namespace: "blog", Name: "hugo-blog"}}); rollout.seen != want {
		t.Errorf("saw %v, want %v", rollout.seen, want)
	}
}

func TestARolloutThatWasReplacedEndsTheWait(t *testing.T) {
	server, client := settledFlux(t, "registry/blog:old")
	rollout := beginRollout(t, client, ofNew)

	token := server.Asked(client, false)
	server.PutSource("True", "Succeeded", fluxtest.LaterRevision, token)
	rollout.Sees("at " + fluxtest.LaterRevision + ", which came after " + fluxtest.NewCommit)
	server.PutBlog("registry/blog:newer", "available")
	rollout.StaysShut(300 * time.Millisecond)
	server.PutKustomization("apps", "True", fluxtest.LaterRevision)
	err := rollout.Fails()
	if _, ok := errors.AsType[*gates.Impossible](err); !ok || !strings.Contains(err.Error(), "the image is registry/blog:newer") {
		t.Errorf("the error is %T %v, want an *Impossible that names the other image", err, err)
	}
}

func TestASuspendedSourceEndsTheWait(t *testing.T) {
	server := fluxtest.Install(t, &shared)
	client := server.Connect()
	server.PutSource("True", "Succeeded", fluxtest.OldRevision, "")
	server.PutKustomization("flux-system", "True", fluxtest.OldRevision)
	server.Put(flux.GitRepositories, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: flux-system, namespace: flux-system},
		spec: {url: "https://192.0.2.12/tazlab-k8s.git", interval: 1m, suspend: true}}`)
	if err := beginRollout(t, client, ofNew).Fails(); !strings.Contains(err.Error(), "flux resume source git flux-system") {
		t.Errorf("the error does not say how to go on: %v", err)
	}
}

// settledFlux is a Flux at rest at the old revision, with the blog available.
func settledFlux(t *testing.T, image string) (*fluxtest.Flux, *kube.Client) {
	server := fluxtest.Install(t, &shared)
	server.PutSource("True", "Succeeded", fluxtest.OldRevision, "")
	server.PutKustomization("flux-system", "True", fluxtest.OldRevision)
	server.PutKustomization("apps", "True", fluxtest.OldRevision)
	server.PutBlog(image, "available")
	return server, server.Connect()
}

func TestAnImageThatRanBeforeWaitsForTheRevisionToBeApplied(t *testing.T) {
	server, client := settledFlux(t, "registry/blog:new")
	rollout := beginRollout(t, client, ofNew)
	server.Asked(client, false)
	server.PutSource("True", "Succeeded", fluxtest.NewRevision, "")
	rollout.Sees("Kustomization apps: ready at " + fluxtest.OldRevision)
	rollout.StaysShut(300 * time.Millisecond)
	server.PutKustomization("apps", "True", fluxtest.NewRevision)
	rollout.Opens()
}

func TestTheHealthOfAnotherAppHoldsNoRolloutUp(t *testing.T) {
	server, client := settledFlux(t, "registry/blog:new")
	rollout := beginRollout(t, client, ofNew)
	server.Asked(client, false)
	server.PutSource("True", "Succeeded", fluxtest.NewRevision, "")
	unhealthy := func(attempted string) {
		server.Put(flux.Kustomizations, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: apps, namespace: flux-system},
			spec: {interval: 10m, path: ./apps, prune: true, sourceRef: {kind: GitRepository, name: flux-system}},
			status: {observedGeneration: 1, lastAppliedRevision: "`+fluxtest.OldRevision+`", lastAttemptedRevision: "`+attempted+`", conditions: [{type: Ready, status: "False",
			reason: HealthCheckFailed, message: "Deployment/other not ready", lastTransitionTime: "`+fluxtest.AnyTime+`"}]}}`)
	}
	unhealthy(fluxtest.OldRevision)
	rollout.Sees("HealthCheckFailed: Deployment/other not ready")
	rollout.StaysShut(300 * time.Millisecond)
	unhealthy(fluxtest.NewRevision)
	rollout.Opens()
}

func TestWithoutACommitTheNewestOneIsFetchedFirst(t *testing.T) {
	server, client := settledFlux(t, "registry/blog:old")
	rollout := beginRollout(t, client, Wanted{Repository: "registry/blog"})
	token := server.Asked(client, false)
	rollout.Sees("at " + fluxtest.OldRevision + ", has not looked for a newer commit yet")
	rollout.StaysShut(300 * time.Millisecond)
	server.PutSource("True", "Succeeded", fluxtest.NewRevision, token)
	rollout.Sees("Kustomization apps: ready at " + fluxtest.OldRevision)
	server.PutBlog("registry/blog:new", "available")
	rollout.StaysShut(300 * time.Millisecond)
	server.PutKustomization("apps", "True", fluxtest.NewRevision)
	rollout.Opens()
	if want := (Seen{fluxtest.NewRevision, "registry/blog:new", kube.Object{Namespace: "blog", Name: "hugo-blog"}}); rollout.seen != want {
		t.Errorf("saw %v, want %v", rollout.seen, want)
	}
}

func TestAnotherCommitIsNotTakenForTheWantedOneWithoutItsImage(t *testing.T) {
	server, client := settledFlux(t, "registry/blog:old")
	rollout := beginRollout(t, client, Wanted{Revision: fluxtest.NewCommit, Repository: "registry/blog"})
	token := server.Asked(client, false)
	server.PutSource("True", "Succeeded", fluxtest.LaterRevision, token)
	if err := rollout.Fails(); !strings.Contains(err.Error(), "it has fetched "+fluxtest.LaterRevision+" instead") {
		t.Errorf("the error does not name the other commit: %v", err)
	}
}

func TestAKustomizationIsAskedAgainWhenItsDependencyIsReady(t *testing.T) {
	server, client := settledFlux(t, "registry/blog:old")
	waiting := func(applied string) {
		server.PutKustomization("base", "True", applied)
		server.Put(flux.Kustomizations, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: apps, namespace: flux-system},
			spec: {interval: 10m, path: ./apps, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, dependsOn: [{name: base}]},
			status: {observedGeneration: 1, lastAppliedRevision: "`+fluxtest.OldRevision+`", conditions: [{type: Ready, status: "False",
			reason: DependencyNotReady, message: "dependency 'flux-system/base' revision is not up to date", lastTransitionTime: "`+fluxtest.AnyTime+`"}]}}`)
	}
	requested := func() string {
		object, err := server.Client().Resource(flux.Kustomizations).Namespace("flux-system").Get(t.Context(), "apps", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return object.GetAnnotations()[flux.RequestedAt]
	}
	rollout := beginRollout(t, client, ofNew)
	server.Asked(client, false)
	waiting(fluxtest.OldRevision)
	server.PutSource("True", "Succeeded", fluxtest.NewRevision, "")
	rollout.Sees("DependencyNotReady")
	rollout.StaysShut(300 * time.Millisecond)
	if requested() != "" {
		t.Error("apps was asked although base is not at the revision")
	}
	waiting(fluxtest.NewRevision)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for requested() == "" {
		if ctx.Err() != nil {
			t.Fatal("apps was not asked again when base was ready")
		}
		time.Sleep(20 * time.Millisecond)
	}
	server.PutBlog("registry/blog:new", "available")
	rollout.Opens()
}

func TestADeliveryMayHaveOtherNames(t *testing.T) {
	server, client := settledFlux(t, "registry/blog:old")
	wanted := ofNew
	wanted.Delivery = flux.Delivery{Deployment: kube.Object{Namespace: "web", Name: "site"}}
	rollout := beginRollout(t, client, wanted)
	server.Asked(client, false)
	server.PutSource("True", "Succeeded", fluxtest.NewRevision, "")
	rollout.Sees("does not exist yet")
	server.PutBlog("registry/blog:new", "available")
	rollout.StaysShut(300 * time.Millisecond)

	err := func() error {
		wanted := ofNew
		wanted.Delivery = flux.Delivery{Source: kube.Object{Namespace: "team", Name: "repo"}}
		_, err := Wait(t.Context(), client, wanted, gates.Options{Timeout: 500 * time.Millisecond})
		return err
	}()
	if err == nil || !strings.Contains(err.Error(), "gitrepositories repo does not exist yet") || !strings.Contains(err.Error(), "kubectl -n team describe gitrepository repo") {
		t.Errorf("the error does not name the other source: %v", err)
	}
}

func TestAnImageWithoutATagIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	for image, want := range map[string]string{
		"tazzo/blog":             "has no tag",
		"localhost:5000/me/blog": "has no tag",
		"Blog:1":                 "is no image",
	} {
		_, err := Wait(t.Context(), &kube.Client{}, Wanted{Image: image}, gates.Options{Timeout: time.Second})
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

func TestTheDeploymentIsFoundByNameOrImage(t *testing.T) {
	deployment := func(namespace, name, image string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": namespace, "name": name},
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": image}}}}},
		}}
	}
	all := []*unstructured.Unstructured{
		deployment("blog", "site", "docker.io/me/blog:blog-1@sha256:"+strings.Repeat("a", 64)), deployment("wiki", "site", "me/wiki:1"), deployment("wiki", "db", "postgres:18"),
		deployment("shop", "front", "me/shop:1"), deployment("shop", "back", "me/shop:1"),
	}
	for title, c := range map[string]struct {
		wanted Wanted
		want   string
	}{
		"by image":              {Wanted{Image: "me/wiki:2"}, "wiki/site"},
		"by repository":         {Wanted{Repository: "index.docker.io/me/blog"}, "blog/site"},
		"by name":               {Wanted{Name: "db", Repository: "me/other"}, "wiki/db"},
		"by both":               {Wanted{Name: "site", Image: "me/blog:blog-2"}, "blog/site"},
		"none yet":              {Wanted{Image: "me/new:1"}, ""},
		"several have it":       {Wanted{Image: "me/shop:2"}, "2 Deployments may be meant: shop/front, shop/back; name one with --deployment"},
		"several have the name": {Wanted{Name: "site", Image: "me/shop:2"}, ""},
	} {
		if err := c.wanted.complete(); err != nil {
			t.Fatal(err)
		}
		found, err := c.wanted.choose(all)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case found != nil:
			got = kube.ObjectOf(found).String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", title, got, c.want)
		}
	}
}
