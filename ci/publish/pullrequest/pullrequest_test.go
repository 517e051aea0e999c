package pullrequest_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/publish"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/publishtest"
	"tazlab.net/castle/ci/publish/pullrequest"
	"tazlab.net/castle/ci/publish/pullrequest/githubtest"
	"tazlab.net/castle/ci/publish/rollback"
)

const branch = "castle/publish/apps/base/hugo-blog/hugo-blog/blog-1a2b3c4"

// proposing is a world whose main branch is protected, and the options to publish into it.
func proposing(t *testing.T, wait time.Duration) (*publishtest.World, *githubtest.Server, publish.Options) {
	t.Helper()
	w := publishtest.New(t)
	hub := w.GitHub(t)
	o := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	o.PullRequest = publishtest.ByPullRequest(hub, wait)
	return w, hub, o
}

func TestAPublishOpensAPullRequestThatSaysWhatItPublishes(t *testing.T) {
	t.Parallel()
	w, hub, o := proposing(t, 0)
	before := w.Tip(t)
	result := publishtest.MustRun(t, o)
	pulls := hub.Pulls()
	if len(pulls) != 1 || pulls[0].Head != branch || pulls[0].Base != "main" || pulls[0].State != "open" || w.Tip(t) != before {
		t.Fatalf("%+v, main at %s", pulls, w.Tip(t))
	}
	if want := "Publish " + w.Image() + ":blog-1a2b3c4"; pulls[0].Title != want {
		t.Errorf("the title is %q, want %q", pulls[0].Title, want)
	}
	for _, part := range []string{
		w.Image() + ":blog-1a2b3c4", result.Image.Digest, result.Source.Commit, "```diff\n", "\n-          image: ", "\n+          image: ",
		"\nCastle-Action: publish\nSource-Commit: " + result.Source.Commit,
	} {
		if !strings.Contains(pulls[0].Body, part) {
			t.Errorf("no %q in\n%s", part, pulls[0].Body)
		}
	}
	if got := result.GitOps.PullRequest; got == nil || got.Number != 1 || got.Reused || got.Merged || result.GitOps.Branch != branch {
		t.Errorf("%+v", result.GitOps)
	}
	if !strings.HasPrefix(result.Text(), "A pull request is open; nothing is rolled out before it is merged\n") || !strings.Contains(result.Text(), "/pull/1, open") {
		t.Errorf("got\n%s", result.Text())
	}
}

func TestTheSamePublishGoesOnWithItsPullRequestAndPushesNothing(t *testing.T) {
	t.Parallel()
	w, hub, o := proposing(t, 0)
	first := publishtest.MustRun(t, o)
	w.TakeEvents()
	again := publishtest.MustRun(t, o)
	publishtest.MustHaveNone(t, w.TakeEvents(), publishtest.IsGitPush)
	if len(hub.Pulls()) != 1 || !again.GitOps.PullRequest.Reused || again.GitOps.Commit != first.GitOps.Commit {
		t.Errorf("%+v %+v", hub.Pulls(), again.GitOps)
	}
}

func TestABranchBehindItsBaseIsMadeAnewOnTheNewTip(t *testing.T) {
	t.Parallel()
	w, hub, o := proposing(t, 0)
	publishtest.MustRun(t, o)
	w.CommitByHand(t, "Another image", strings.Replace(w.Manifest(t), "blog-0000000\" # the tag", "blog-9999999\" # another", 1))
	tip := w.Tip(t)
	result := publishtest.MustRun(t, o)
	if parents := w.Git(t, "log", "-1", "--format=%P", branch); parents != tip || result.GitOps.Commit != w.Git(t, "rev-parse", branch) {
		t.Errorf("the branch is on %s, want one commit on %s", parents, tip)
	}
	if pulls := hub.Pulls(); len(pulls) != 1 || !strings.Contains(pulls[0].Body, "\n-          image: \""+w.Image()+":blog-9999999\"") || strings.Contains(pulls[0].Body, "blog-0000000") {
		t.Errorf("the pull requests are %+v", pulls)
	}
}

func TestABranchWithSomebodysCommitIsLeftAlone(t *testing.T) {
	t.Parallel()
	w, _, o := proposing(t, 0)
	publishtest.MustRun(t, o)
	tree := w.Git(t, "rev-parse", branch+"^{tree}")
	work := git.Runner{Dir: w.Bare(), Env: []string{
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org",
	}}
	commit, err := work.Run(t.Context(), "commit-tree", tree, "-p", branch, "-m", "My fix")
	if err != nil {
		t.Fatal(err)
	}
	w.Git(t, "update-ref", "refs/heads/"+branch, strings.TrimSpace(commit))
	w.MustStay(t, func() {
		_, err = publish.Run(t.Context(), o)
		if !errors.Is(err, gitops.ErrForeign) {
			t.Errorf("got %v", err)
		}
		publishtest.MustSay(t, err, branch, "Ann", "My fix", "--push-branch")
	})
}

func TestThePublishIsDoneWhenSomebodyHasMergedIt(t *testing.T) {
	t.Parallel()
	for _, way := range []string{githubtest.ByMerge, githubtest.BySquash, githubtest.ByRebase} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w, hub, o := proposing(t, time.Minute)
			hub.RequireReviews(true)
			looks := 0
			hub.OnLook(func(number int) {
				if looks++; looks == 3 {
					hub.RequireReviews(false)
					if _, err := hub.Merge(number, way); err != nil {
						t.Error(err)
					}
				}
			})
			result := publishtest.MustRun(t, o)
			if result.GitOps.Commit != w.Tip(t) || result.GitOps.Branch != "main" || !result.GitOps.PullRequest.Merged {
				t.Errorf("%+v, main at %s", result.GitOps, w.Tip(t))
			}
			follower := &publishtest.Cluster{T: t, World: w}
			if err := result.WaitRollout(t.Context(), follower); err != nil || follower.Commit != w.Tip(t) || follower.Image != w.Image()+":blog-1a2b3c4" {
				t.Errorf("%v %+v", err, follower)
			}
			entry := w.History(t)[0]
			if entry.Commit != w.Tip(t) || entry.Action != gitops.Publish || entry.Digest != result.Image.Digest {
				t.Errorf("%+v", entry)
			}

			back := w.RollbackTo("blog-0000000")
			publishedByHand(t, w)
			back.PullRequest = publishtest.ByPullRequest(hub, 0)
			rolled, err := rollback.Run(t.Context(), back)
			if err != nil || rolled.GitOps.PullRequest == nil || rolled.GitOps.PullRequest.Number != 2 {
				t.Errorf("%+v %v", rolled.GitOps, err)
			}
		})
	}
}

// publishedByHand puts the image into the registry that the manifest began with.
func publishedByHand(t *testing.T, w *publishtest.World) {
	t.Helper()
	w.Overwrite(t, "blog-0000000", publishtest.NewImage(t))
}

func TestABranchThatMustBeUpToDateIsMadeSoWhileItsMergeIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, strict := range map[string]bool{"a rule wants it": true, "it conflicts": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, hub, o := proposing(t, time.Minute)
			hub.RequireUpToDate(strict)
			moved := false
			hub.OnLook(func(number int) {
				switch {
				case !moved && strict:
					moved = true
					w.CommitByHand(t, "Another line", "# moved\n"+w.Manifest(t))
				case !moved:
					moved = true
					w.CommitByHand(t, "Another image", strings.Replace(w.Manifest(t), "blog-0000000\" # the tag", "blog-9999999\" # the tag", 1))
				default:
					_, _ = hub.Merge(number, githubtest.BySquash)
				}
			})
			result := publishtest.MustRun(t, o)
			if !result.GitOps.PullRequest.Merged || result.GitOps.Commit != w.Tip(t) || !strings.Contains(w.Manifest(t), ":blog-1a2b3c4\"") {
				t.Errorf("%+v", result.GitOps)
			}
		})
	}
}

func TestWhatIsClosedOrNotMergedEndsTheWait(t *testing.T) {
	t.Parallel()
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		w, hub, o := proposing(t, time.Minute)
		hub.OnLook(hub.Close)
		before := w.Tip(t)
		_, err := publish.Run(t.Context(), o)
		if !errors.Is(err, pullrequest.ErrClosed) || w.Tip(t) != before {
			t.Errorf("got %v", err)
		}
		publishtest.MustSay(t, err, "#1", "/pull/1", "closed without being merged", "run this again")
	})
	t.Run("not merged", func(t *testing.T) {
		t.Parallel()
		_, hub, o := proposing(t, 500*time.Millisecond)
		hub.RequireReviews(true)
		_, err := publish.Run(t.Context(), o)
		if !errors.Is(err, pullrequest.ErrNotMerged) || hub.Pulls()[0].State != "open" {
			t.Errorf("got %v", err)
		}
		publishtest.MustSay(t, err, "#1", "a review or a check", "--merge-timeout")
	})
}

func TestWhatGitHubRefusesIsToldBeforeAnythingIsChangedAndNeverWithTheToken(t *testing.T) {
	t.Parallel()
	quoting := func(status int, headers ...string) githubtest.Fault {
		return githubtest.Answer(status, "who sent "+publishtest.GitToken+"? "+fmt.Sprintf("%q", publishtest.GitToken), headers...)
	}
	for name, test := range map[string]struct {
		fault githubtest.Fault
		kind  error
		words []string
	}{
		"401": {quoting(401), pullrequest.ErrUnauthorized, []string{"expired", "--git-token"}},
		"403": {quoting(403), pullrequest.ErrForbidden, []string{"contents and pull requests, read and write"}},
		"404": {quoting(404), pullrequest.ErrNotFound, []string{"/me/tazlab-k8s.git"}},
		"422": {quoting(422), pullrequest.ErrInvalid, []string{"422"}},
		"429": {quoting(429, "Retry-After: 3600"), pullrequest.ErrRateLimited, []string{"1h0m0s"}},
		"the hour's requests are used up": {
			quoting(403, "X-RateLimit-Remaining: 0", fmt.Sprintf("X-RateLimit-Reset: %d", time.Now().Add(time.Hour).Unix())), pullrequest.ErrRateLimited, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, hub, o := proposing(t, 0)
			hub.Fail(test.fault)
			w.MustStay(t, func() {
				_, err := publish.Run(t.Context(), o)
				if !errors.Is(err, test.kind) {
					t.Errorf("got %v", err)
				}
				publishtest.MustSay(t, err, append(test.words, "nothing is changed yet")...)
				if err != nil && (strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "4f1d")) {
					t.Errorf("the token is in %v", err)
				}
			})
		})
	}
}

func TestAPauseThatGitHubAsksForIsKept(t *testing.T) {
	t.Parallel()
	_, hub, o := proposing(t, 0)
	hub.Fail(githubtest.Answer(403, "You have exceeded a secondary rate limit.", "Retry-After: 1"), githubtest.Answer(502, "Bad Gateway"))
	began := time.Now()
	publishtest.MustRun(t, o)
	if took := time.Since(began); took < time.Second {
		t.Errorf("it came back after %s", took)
	}
	if n := len(hub.Pulls()); n != 1 {
		t.Errorf("%d pull requests", n)
	}
}

func TestAnAnswerThatWasLostMakesNoSecondPullRequest(t *testing.T) {
	t.Parallel()
	_, hub, o := proposing(t, 0)
	pass := func(http.ResponseWriter, *http.Request) bool { return false }
	hub.Fail(pass, pass, func(w http.ResponseWriter, r *http.Request) bool { // the look, the search, the opening
		hub.Lose(r)
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	if result := publishtest.MustRun(t, o); !result.GitOps.PullRequest.Reused || len(hub.Pulls()) != 1 {
		t.Errorf("%+v %+v", result.GitOps.PullRequest, hub.Pulls())
	}
}

func TestARedirectToAnotherHostDoesNotGetTheToken(t *testing.T) {
	t.Parallel()
	_, hub, o := proposing(t, 0)
	other := githubtest.New(t, t.TempDir(), "me", "tazlab-k8s", publishtest.GitToken)
	for range 20 {
		hub.Fail(githubtest.Answer(http.StatusTemporaryRedirect, "", "Location: "+other.URL+"repos/me/tazlab-k8s/pulls"))
	}
	o.PullRequest.API = hub.URL
	ctx, cancel := contextWithin(t, 2*time.Second)
	defer cancel()
	_, err := publish.Run(ctx, o)
	if err == nil || len(other.Requests()) != 0 {
		t.Errorf("got %v; the other host was asked %v", err, other.Requests())
	}
}

func TestADryRunProposesNothing(t *testing.T) {
	t.Parallel()
	w, hub, o := proposing(t, time.Minute)
	o.DryRun = true
	w.MustStay(t, func() {
		if result := publishtest.MustRun(t, o); !result.GitOps.Changed || len(hub.Pulls()) != 0 {
			t.Errorf("%+v %+v", result.GitOps, hub.Pulls())
		}
	})
}
