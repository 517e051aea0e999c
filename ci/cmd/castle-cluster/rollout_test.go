package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/rollout"
	"tazlab.net/castle/ci/publish/report"
)

func TestTheDeploymentIsThatOfTheManifest(t *testing.T) {
	named := kube.Object{Namespace: "hugo-blog", Name: "hugo-blog"}
	given := kube.Object{Namespace: "web", Name: "pre-site"}
	for title, c := range map[string]struct {
		given    kube.Object
		resource report.Resource
		want     rollout.Wanted
	}{
		"whole":                  {resource: report.Resource{Kind: "Deployment", Namespace: "hugo-blog", Name: "hugo-blog"}, want: wanted(named, "hugo-blog")},
		"kustomize adds":         {resource: report.Resource{Kind: "Deployment", Name: "hugo-blog"}, want: wanted(kube.Object{}, "hugo-blog")},
		"the image tells":        {resource: report.Resource{Kind: "Kustomization"}, want: wanted(kube.Object{}, "")},
		"a chart's values":       {resource: report.Resource{Kind: "HelmRelease", Namespace: "blog", Name: "site"}, want: wanted(kube.Object{}, "")},
		"a flag outdoes a kind":  {given: given, resource: report.Resource{Kind: "StatefulSet", Name: "x"}, want: wanted(given, "")},
		"a flag outdoes a names": {given: given, resource: report.Resource{Kind: "Deployment", Namespace: "a", Name: "b"}, want: wanted(given, "")},
	} {
		w := &clusterWaiter{}
		w.delivery.Deployment = c.given
		var got rollout.Wanted
		got.Delivery = w.delivery
		if err := w.of(c.resource, &got); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", title, got, err, c.want)
		}
	}
	err := (&clusterWaiter{}).of(report.Resource{Kind: "StatefulSet", Name: "site"}, &rollout.Wanted{})
	if err == nil || !strings.Contains(err.Error(), "a StatefulSet, site, and castle waits for Deployments") {
		t.Errorf("%v", err)
	}
}

func wanted(deployment kube.Object, name string) rollout.Wanted {
	w := rollout.Wanted{Name: name}
	w.Deployment = deployment
	return w
}

// The report of the whole run is printed though its rollout was not seen, and that is an error nevertheless.
func TestWhatWasPublishedIsToldThoughTheRolloutWasNotSeen(t *testing.T) {
	for title, kubeconfig := range map[string]string{
		"a cluster that does not answer": `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: s, user: u}}],
			clusters: [{name: s, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: u, user: {token: t}}]}`,
		"no way to any": "no kubeconfig",
	} {
		t.Run(title, func(t *testing.T) {
			const image = "me/blog:blog-1a2b3c4"
			data, err := json.Marshal(report.Result{
				Rollback: true, Changed: true, Image: report.Image{Repository: "me/blog", Tag: "blog-1a2b3c4"},
				GitOps: report.GitOps{Branch: "main", Commit: "c0ffee", Image: image, Resource: report.Resource{Kind: "Deployment", Namespace: "web", Name: "site"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "result.json")
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv(kubeconfigVariable, kubeconfig)
			command := newRolloutCommand()
			var out strings.Builder
			command.SetOut(&out)
			command.SetErr(&strings.Builder{})
			command.SetArgs([]string{"--published=" + file, "--timeout=300ms"})
			err = command.Execute()
			if err == nil || !strings.Contains(err.Error(), "the manifest on branch main names it (GitOps commit c0ffee); only the rollout of web/site was not seen") {
				t.Errorf("%v", err)
			}
			if !strings.HasPrefix(out.String(), "Rolled back, but its rollout was not seen\n") {
				t.Errorf("printed %q", out.String())
			}
		})
	}
}
