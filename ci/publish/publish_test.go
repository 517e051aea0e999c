package publish

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/worktree"
)

func TestAPublishPushesTheImageAndChangesOneLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.manifest(t)
	image := newImage(t)
	result := mustRun(t, w.options(t, "1a2b3c4", image))

	want := strings.Replace(before, w.image()+`:blog-0000000"`, w.image()+`:blog-1a2b3c4"`, 1)
	if after := w.manifest(t); after != want {
		t.Errorf("the manifest is\n%s\nwant\n%s", after, want)
	}
	if result.Image.Digest != digestOf(t, image) || result.Image.AlreadyThere || result.Image.UploadedBytes == 0 {
		t.Errorf("%+v", result.Image)
	}
	if !result.Changed || !result.GitOps.Changed || result.GitOps.Commit != w.tip(t) || result.GitOps.Attempts != 1 {
		t.Errorf("%+v", result.GitOps)
	}
	message := w.git(t, "log", "-1", "--format=%B", "main")
	for _, trailer := range []string{"Source-Commit: " + commitOf("1a2b3c4").SHA, "Image-Digest: " + result.Image.Digest} {
		if !strings.Contains(message, trailer) {
			t.Errorf("no %q in\n%s", trailer, message)
		}
	}
}

func TestAnIndexOverSeveralPlatformsIsPublishedAsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: newImage(t)}, mutate.IndexAddendum{Add: newImage(t)})
	if result := mustRun(t, w.options(t, "1a2b3c4", index)); result.Image.Digest != digestOf(t, index) {
		t.Errorf("%+v", result.Image)
	}
}

func TestTheManifestIsCommittedOnlyAfterTheRegistryConfirmedTheDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mustRun(t, w.options(t, "1a2b3c4", newImage(t)))

	events := w.takeEvents()
	tag := "/v2/me/blog/manifests/blog-1a2b3c4"
	put := slices.Index(events, "registry PUT "+tag)
	push := slices.IndexFunc(events, isGitPush)
	if put < 0 || push < 0 {
		t.Fatalf("no tag or no push in\n%s", strings.Join(events, "\n"))
	}
	confirmed := put + 1 + slices.Index(events[put+1:], "registry HEAD "+tag)
	if confirmed == put || push < confirmed {
		t.Errorf("the push was begun before the confirmation:\n%s", strings.Join(events, "\n"))
	}
	for _, event := range events[push:] {
		if strings.HasPrefix(event, "registry ") {
			t.Errorf("%q came after the push was begun", event)
		}
	}
}

func TestTheManifestStaysWhereTheRegistryDoesNotTakeOrConfirmTheTag(t *testing.T) {
	onTag := func(method string) func(*http.Request) bool {
		return func(r *http.Request) bool {
			return r.Method == method && path.Base(r.URL.Path) == "blog-1a2b3c4"
		}
	}
	for name, c := range map[string]struct {
		spoils func(put bool, r *http.Request) bool
		status int
		says   string
	}{
		"the tag is refused": {
			func(_ bool, r *http.Request) bool { return onTag(http.MethodPut)(r) }, http.StatusForbidden, "refused access (403)",
		},
		"the tag fails": {
			func(_ bool, r *http.Request) bool { return onTag(http.MethodPut)(r) }, http.StatusInternalServerError, "not available",
		},
		"the confirmation fails": {
			func(put bool, r *http.Request) bool { return put && onTag(http.MethodHead)(r) }, http.StatusBadGateway, "not available",
		},
		"the tag was taken and is not there": {
			func(put bool, r *http.Request) bool { return put && onTag(http.MethodHead)(r) }, http.StatusNotFound, "does not show the tag yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var mu sync.Mutex
			put, spoiled := false, 0
			w.setAnswer(func(rw http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				if c.spoils(put, r) {
					spoiled++
					rw.WriteHeader(c.status)
					return true
				}
				put = put || onTag(http.MethodPut)(r)
				return false
			})
			w.mustStay(t, func() {
				result, err := Run(t.Context(), w.options(t, "1a2b3c4", newImage(t)))
				mustSay(t, err, "the manifest is untouched", w.image()+":blog-1a2b3c4", c.says)
				if result.Changed || result.GitOps.Changed {
					t.Errorf("%+v", result)
				}
			})
			if spoiled == 0 {
				t.Error("the registry was never spoiled")
			}
		})
	}
}

func TestAPassingMoodOfTheRegistryIsOutlasted(t *testing.T) {
	for _, mood := range []registry.Mood{registry.TooManyRequests, registry.ServerError, registry.CutConnection} {
		t.Run(string(mood), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, registry.Fault{Mood: mood, Times: 2, Match: oncePerBlob()})
			start := time.Now()
			image := newImage(t)
			result := mustRun(t, w.options(t, "1a2b3c4", image))
			if w.Met(mood) == 0 {
				t.Error("the mood was never met")
			}
			if took := time.Since(start); mood == registry.TooManyRequests && took < time.Second {
				t.Errorf("took %s, though the registry said Retry-After: 1", took)
			}
			if result.Image.Digest != digestOf(t, image) || !strings.Contains(w.manifest(t), ":blog-1a2b3c4") {
				t.Errorf("%+v", result)
			}
		})
	}
}

// oncePerBlob chooses each path once, so that the number of attempts is not
// used up by one blob. Uploads have a path of their own each.
func oncePerBlob() func(*http.Request) bool {
	seen := map[string]bool{} // guarded by the faults' lock
	return func(r *http.Request) bool {
		chosen := !seen[r.URL.Path]
		seen[r.URL.Path] = true
		return chosen
	}
}

func TestARegistryThatStaysInItsMoodGivesOneErrorAndLeavesTheManifest(t *testing.T) {
	for mood, says := range map[registry.Mood]string{
		registry.Unauthorized:    "check the user name and the token",
		registry.Forbidden:       "may write to me/blog",
		registry.TooManyRequests: "429 Too Many Requests",
		registry.ServerError:     "run it again later",
		registry.CutConnection:   "run it again later",
	} {
		t.Run(string(mood), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, registry.Fault{Mood: mood, Times: -1})
			o := w.options(t, "1a2b3c4", newImage(t))
			o.Registry.Tries = 2
			w.mustStay(t, func() {
				_, err := Run(t.Context(), o)
				mustSay(t, err, "the manifest is untouched", w.registryHost, says)
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("more than one line: %v", err)
				}
			})
		})
	}
}

func TestTheSameCommitPublishedTwiceChangesNothingTheSecondTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	image := newImage(t)
	first := mustRun(t, w.options(t, "1a2b3c4", image))
	tip := w.tip(t)
	w.takeEvents()
	second := mustRun(t, w.options(t, "1a2b3c4", image))

	events := w.takeEvents()
	mustHaveNone(t, events, isRegistryWrite)
	mustHaveNone(t, events, isGitPush)
	if w.tip(t) != tip || second.GitOps.Commit != tip {
		t.Errorf("a second commit was made: %+v", second.GitOps)
	}
	if second.Changed || !second.Image.AlreadyThere || second.Image.UploadedBytes != 0 || second.Image.Digest != first.Image.Digest {
		t.Errorf("%+v", second)
	}
	if text := second.Text(); !strings.HasPrefix(text, "Nothing to do: this commit is published already\n") {
		t.Errorf("got\n%s", text)
	}
}

func TestAPublishThatWasCutShortBeforeTheCommitIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	image := newImage(t)
	broken := w.options(t, "1a2b3c4", image)
	broken.Repository.Credentials.Token = "wrong"
	_, err := Run(t.Context(), broken)
	mustSay(t, err, "the image "+w.image()+":blog-1a2b3c4 is in the registry", "token")
	if !errors.Is(err, git.ErrUnauthorized) {
		t.Errorf("got %v", err)
	}
	w.takeEvents()
	result := mustRun(t, w.options(t, "1a2b3c4", image))
	mustHaveNone(t, w.takeEvents(), isRegistryWrite)
	if !result.Changed || !result.Image.AlreadyThere || result.GitOps.Commit != w.tip(t) {
		t.Errorf("%+v", result)
	}
}

func TestATagWithOtherContentIsRefusedAndBothDigestsAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	there, other := newImage(t), newImage(t)
	mustRun(t, w.options(t, "1a2b3c4", there))
	for _, dryRun := range []bool{false, true} {
		t.Run(fmt.Sprintf("dry run %t", dryRun), func(t *testing.T) {
			o := w.options(t, "1a2b3c4", other)
			o.DryRun = dryRun
			w.mustStay(t, func() {
				_, err := Run(t.Context(), o)
				mustSay(t, err, "the manifest is untouched", w.image()+":blog-1a2b3c4", digestOf(t, there), digestOf(t, other))
				var conflict *imagepush.TagConflictError
				if !errors.As(err, &conflict) {
					t.Errorf("%T", err)
				}
			})
			if found, err := imagepush.Lookup(t.Context(), w.access(), w.image()+":blog-1a2b3c4"); err != nil || found != digestOf(t, there) {
				t.Errorf("the tag is %s (%v)", found, err)
			}
		})
	}
}

func TestTheTagLatestIsNeverPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options(t, "1a2b3c4", newImage(t))
	o.TagPrefix, o.Commit = "", worktree.Commit{SHA: commitOf("1a2b3c4").SHA, Short: "latest"}
	w.mustStay(t, func() {
		_, err := Run(t.Context(), o)
		mustSay(t, err, "latest")
	})
}

func TestADryRunTellsTheChangeAndMakesNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options(t, "1a2b3c4", newImage(t))
	o.DryRun = true
	w.mustStay(t, func() {
		result := mustRun(t, o)
		mustHaveNone(t, w.takeEvents(), isRegistryWrite)
		if !result.DryRun || !result.GitOps.Changed || result.GitOps.Commit != "" || result.Image.AlreadyThere {
			t.Errorf("%+v", result)
		}
		text := result.Text()
		for _, want := range []string{"Dry run: nothing was pushed", "not in the registry yet", `-          image: "` + w.image() + `:blog-0000000"`, `+          image: "` + w.image() + `:blog-1a2b3c4"`} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	})
}

func TestADryRunThatFailsAtTheManifestDoesNotClaimAnImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options(t, "1a2b3c4", newImage(t))
	o.DryRun, o.Update.Path = true, "apps/missing.yaml"
	_, err := Run(t.Context(), o)
	mustSay(t, err, "apps/missing.yaml")
	if strings.Contains(err.Error(), "is in the registry") {
		t.Errorf("got %v", err)
	}
}

func TestStepsThatWereDoneBeforeAreInTheReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options(t, "1a2b3c4", newImage(t))
	o.Began, o.Steps = time.Now().Add(-time.Minute), []Step{{Name: "build the site", Seconds: 12}}
	result := mustRun(t, o)
	var names []string
	for _, step := range result.Steps {
		names = append(names, step.Name)
	}
	if want := []string{"build the site", "push the image", "update the manifest"}; !slices.Equal(names, want) {
		t.Errorf("steps %v, want %v", names, want)
	}
	if result.Seconds < 60 {
		t.Errorf("%.1f s in all, though it began a minute ago", result.Seconds)
	}
}

func TestAStepIsReadFromText(t *testing.T) {
	t.Parallel()
	step, err := ParseStep("build the site with Hugo=1.5s")
	if err != nil || step != (Step{"build the site with Hugo", 1.5}) {
		t.Errorf("%+v, %v", step, err)
	}
	for _, text := range []string{"", "build", "build=", "build=fast", "=1s"} {
		if _, err := ParseStep(text); err == nil || !strings.Contains(err.Error(), "want name=duration") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTwentyPublishersAtOnceLoseNoCommit(t *testing.T) {
	t.Parallel()
	const publishers = 20
	w := newWorld(t)
	before := w.tip(t)
	results := make([]Result, publishers)
	var running sync.WaitGroup
	for i := range publishers {
		o := w.options(t, fmt.Sprintf("%07x", 0xa000000+i), newImage(t))
		o.Update.Patience = 10 * time.Minute // a slow machine is no failure
		running.Go(func() {
			var err error
			if results[i], err = Run(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()

	commits := strings.Fields(w.git(t, "rev-list", before+"..main"))
	if len(commits) != publishers {
		t.Errorf("%d commits, want %d", len(commits), publishers)
	}
	raced := 0
	for i, result := range results {
		if !slices.Contains(commits, result.GitOps.Commit) {
			t.Errorf("the commit of publisher %d is not on the branch: %q", i, result.GitOps.Commit)
		}
		if want := w.image() + ":" + result.Image.Tag; !strings.Contains(w.git(t, "show", result.GitOps.Commit+":"+manifestPath), want) {
			t.Errorf("%s does not name %s", result.GitOps.Commit, want)
		}
		if result.GitOps.Attempts > 1 {
			raced++
		}
	}
	if raced == 0 {
		t.Error("nobody met another: the test proved nothing")
	}
	if published := w.history(t); len(published) < publishers || published[0].Action != gitops.Publish {
		t.Errorf("the history has %d entries", len(published))
	}
}
