package calls

import (
	"maps"
	"slices"
	"testing"
)

// Of publish-blog's arguments, those that change what is built; the others are about where it goes. Each is in one of the two,
// so that a new one is not forgotten in the calls that look at the same site.
var (
	building = []string{"source", "site", "path", "hugo", "base-url", "headers"}
	going    = []string{
		"image", "tag-prefix", "registry-username", "registry-password", "registry-service", "platforms", "port", "sign", "sbom", "cosign-key",
		"cosign-password", "gitops-url", "gitops-branch", "gitops-service", "manifest-path", "container", "resource", "deployment", "git-token", "ssh-agent",
		"known-hosts", "source-token", "push-branch", "pull-request", "github-api", "merge-timeout", "pin-digest", "author-name", "author-email", "signing-key",
		"dry-run", "rebuild", "wait", "rollback-on-failure", "wait-timeout", "cluster", "repository", "age-key", "kubeconfig", "flux-source",
		"flux-kustomization", "time-scale", "retry-for", "format",
	}
)

func TestTheSameSiteCanBeCheckedAndPreviewedAsItIsPublished(t *testing.T) {
	castle := module(t).Types["Castle"]
	arguments := slices.Sorted(maps.Keys(castle["publish-blog"].Arguments))
	if want := slices.Sorted(slices.Values(slices.Concat(building, going))); !slices.Equal(arguments, want) {
		t.Errorf("publish-blog takes\n%q\nwant\n%q: say here which arguments change what is built", arguments, want)
	}
	for _, name := range []string{"site", "check-blog", "blog-findings", "blog-baseline", "blog-screenshots", "preview-blog"} {
		for _, argument := range building {
			if name == "site" && argument == "site" {
				argument = "name"
			}
			if _, takes := castle[name].Arguments[argument]; !takes {
				t.Errorf("%s has no --%s, which publish-blog builds with", name, argument)
			}
		}
	}
}
