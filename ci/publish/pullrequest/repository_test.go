package pullrequest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/manifest"
	"tazlab.net/castle/ci/publish/publishtest"
	"tazlab.net/castle/ci/publish/pullrequest"
)

func contextWithin(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

func TestAnAddressOfGitHubIsTakenInEachOfItsForms(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://github.com/me/k8s", "https://github.com/me/k8s.git", "https://github.com/me/k8s/", "git@github.com:me/k8s.git",
		"ssh://git@github.com/me/k8s.git", "ssh://git@ssh.github.com:443/me/k8s.git",
	} {
		if _, err := pullrequest.Open(address, "", "token"); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"https://ghe.example.org/me/k8s", "git@ghe.example.org:me/k8s.git"} {
		if _, err := pullrequest.Open(address, "https://ghe.example.org/api/v3", "token"); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestWhatIsNoRepositoryOfGitHubIsRefusedWithAllThatIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		address, api, token string
		words               []string
	}{
		"another host":    {"https://gitlab.com/me/k8s.git", "", "token", []string{"gitlab.com", "--github-api"}},
		"all at once":     {"https://git.example.org/k8s.git", "", "", []string{"OWNER/NAME", "--github-api", "--git-token"}},
		"a folder":        {"/srv/k8s.git", "", "token", []string{"--github-api"}},
		"too deep":        {"https://github.com/me/k8s/tree", "", "token", []string{"OWNER/NAME"}},
		"in clear":        {"https://ghe.example.org/me/k8s", "http://ghe.example.org/api/v3", "token", []string{"in clear", "https"}},
		"with a password": {"https://ghe.example.org/me/k8s", "https://me:canary-1@ghe.example.org/api/v3", "token", []string{"credentials", "--git-token"}},
		"no API":          {"https://ghe.example.org/me/k8s", "ghe.example.org", "token", []string{"--github-api", "api/v3"}},
		"two lines":       {"https://github.com/me/k8s", "", "canary-1\ncanary-2", []string{"line break"}},
	} {
		_, err := pullrequest.Open(test.address, test.api, test.token)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		publishtest.MustSay(t, err, test.words...)
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: a secret is in %v", name, err)
		}
	}
}

func TestABranchIsNamedByWhatItChanges(t *testing.T) {
	t.Parallel()
	update := gitops.UpdateRequest{Path: "apps/my blog/..blog.yaml", Tag: "blog-1a2b3c4", Selector: manifest.Selector{Resource: "Deployment/blog", Container: "web"}}
	if got, want := pullrequest.Branch(update), "castle/publish/apps/my-blog/-blog/Deployment/blog/web/blog-1a2b3c4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	update.Action = gitops.Rollback
	if got := pullrequest.Branch(update); !strings.HasPrefix(got, "castle/rollback/") {
		t.Errorf("got %s", got)
	}
}
