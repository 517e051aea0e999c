package publish_test

import (
	"tazlab.net/castle/ci/base/registry/registrytest"

	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/publish"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/inputs"
	"tazlab.net/castle/ci/publish/publishtest"
	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/publish/worktree"
	"tazlab.net/castle/ci/test/tell"
)

func TestAPublishPushesTheImageAndChangesOneLine(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	before := w.Manifest(t)
	image := publishtest.NewImage(t)
	result := publishtest.MustRun(t, w.Options(t, "1a2b3c4", image))

	want := strings.Replace(before, w.Image()+`:blog-0000000"`, w.Image()+`:blog-1a2b3c4"`, 1)
	if after := w.Manifest(t); after != want {
		t.Errorf("the manifest is\n%s\nwant\n%s", after, want)
	}
	if result.Image.Digest != publishtest.DigestOf(t, image) || result.Image.AlreadyThere || result.Image.UploadedBytes == 0 {
		t.Errorf("%+v", result.Image)
	}
	if !result.Changed || !result.GitOps.Changed || result.GitOps.Commit != w.Tip(t) || result.GitOps.Attempts != 1 {
		t.Errorf("%+v", result.GitOps)
	}
	message := w.Git(t, "log", "-1", "--format=%B", "main")
	for _, trailer := range []string{"Source-Commit: " + publishtest.CommitOf("1a2b3c4").SHA, "Image-Digest: " + result.Image.Digest} {
		if !strings.Contains(message, trailer) {
			t.Errorf("no %q in\n%s", trailer, message)
		}
	}
}

func TestAnIndexOverSeveralPlatformsIsPublishedAsOne(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: publishtest.NewImage(t)}, mutate.IndexAddendum{Add: publishtest.NewImage(t)})
	if result := publishtest.MustRun(t, w.Options(t, "1a2b3c4", index)); result.Image.Digest != publishtest.DigestOf(t, index) {
		t.Errorf("%+v", result.Image)
	}
}

func TestTheManifestIsCommittedOnlyAfterTheRegistryConfirmedTheDigest(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	publishtest.MustRun(t, w.Options(t, "1a2b3c4", publishtest.NewImage(t)))

	events := w.TakeEvents()
	tag := "/v2/me/blog/manifests/blog-1a2b3c4"
	put := slices.Index(events, "registry PUT "+tag)
	push := slices.IndexFunc(events, publishtest.IsGitPush)
	if put < 0 || push < 0 {
		t.Fatalf("no tag or no push in\n%s", strings.Join(events, "\n"))
	}
	confirmed := put + 1 + slices.Index(events[put+1:], "registry HEAD "+tag)
	if confirmed == put || push < confirmed {
		t.Errorf("the push was begun before the confirmation:\n%s", strings.Join(events, "\n"))
	}
	tell.Observation(t, 0, "the registry was asked for the tag at request %d, and the push to Git was request %d", confirmed+1, push+1)
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
			w := publishtest.New(t)
			var mu sync.Mutex
			put, spoiled := false, 0
			w.SetAnswer(func(rw http.ResponseWriter, r *http.Request) bool {
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
			w.MustStay(t, func() {
				result, err := publish.Run(t.Context(), w.Options(t, "1a2b3c4", publishtest.NewImage(t)))
				publishtest.MustSay(t, err, "the manifest is untouched", w.Image()+":blog-1a2b3c4", c.says)
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
	for _, mood := range []registrytest.Mood{registrytest.TooManyRequests, registrytest.ServerError, registrytest.CutConnection} {
		t.Run(string(mood), func(t *testing.T) {
			t.Parallel()
			tell.Fault(t, "the registry twice: %s", mood)
			w := publishtest.New(t, registrytest.Fault{Mood: mood, Times: 2, Match: oncePerBlob()})
			start := time.Now()
			image := publishtest.NewImage(t)
			result := publishtest.MustRun(t, w.Options(t, "1a2b3c4", image))
			tell.Success(t, "publish", time.Since(start))
			if w.Met(mood) == 0 {
				t.Error("the mood was never met")
			}
			if took := time.Since(start); mood == registrytest.TooManyRequests && took < time.Second {
				t.Errorf("took %s, though the registry said Retry-After: 1", took)
			}
			if result.Image.Digest != publishtest.DigestOf(t, image) || !strings.Contains(w.Manifest(t), ":blog-1a2b3c4") {
				t.Errorf("%+v", result)
			}
		})
	}
}

// oncePerBlob chooses each path once, so that the number of attempts is not used up by one blob. Uploads have a path of
// their own each.
func oncePerBlob() func(*http.Request) bool {
	seen := map[string]bool{} // guarded by the faults' lock
	return func(r *http.Request) bool {
		chosen := !seen[r.URL.Path]
		seen[r.URL.Path] = true
		return chosen
	}
}

func TestARegistryThatStaysInItsMoodGivesOneErrorAndLeavesTheManifest(t *testing.T) {
	for mood, says := range map[registrytest.Mood]string{
		registrytest.Unauthorized:    "check the user name and the token",
		registrytest.Forbidden:       "may write to me/blog",
		registrytest.TooManyRequests: "429 Too Many Requests",
		registrytest.ServerError:     "run it again later",
		registrytest.CutConnection:   "run it again later",
	} {
		t.Run(string(mood), func(t *testing.T) {
			t.Parallel()
			tell.Fault(t, "the registry always: %s", mood)
			w := publishtest.New(t, registrytest.Fault{Mood: mood, Times: -1})
			o := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
			o.Registry.Tries = 2
			w.MustStay(t, func() {
				_, err := publish.Run(t.Context(), o)
				tell.Observation(t, 0, "%v", err)
				publishtest.MustSay(t, err, "the manifest is untouched", w.RegistryHost, says)
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("more than one line: %v", err)
				}
			})
		})
	}
}

func TestTheSameCommitPublishedTwiceChangesNothingTheSecondTime(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	image := publishtest.NewImage(t)
	first := publishtest.MustRun(t, w.Options(t, "1a2b3c4", image))
	tip := w.Tip(t)
	w.TakeEvents()
	second := publishtest.MustRun(t, w.Options(t, "1a2b3c4", image))

	events := w.TakeEvents()
	publishtest.MustHaveNone(t, events, publishtest.IsRegistryWrite)
	publishtest.MustHaveNone(t, events, publishtest.IsGitPush)
	if w.Tip(t) != tip || second.GitOps.Commit != tip {
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
	w := publishtest.New(t)
	image := publishtest.NewImage(t)
	hook(t, w, "#!/bin/sh\nexit 1\n")
	_, err := publish.Run(t.Context(), w.Options(t, "1a2b3c4", image))
	publishtest.MustSay(t, err, "the image "+w.Image()+":blog-1a2b3c4 is in the registry", "ask who runs the repository")
	if !errors.Is(err, git.ErrRejected) {
		t.Errorf("got %v", err)
	}
	hook(t, w, "#!/bin/sh\n")
	w.TakeEvents()
	result := publishtest.MustRun(t, w.Options(t, "1a2b3c4", image))
	publishtest.MustHaveNone(t, w.TakeEvents(), publishtest.IsRegistryWrite)
	if !result.Changed || !result.Image.AlreadyThere || result.GitOps.Commit != w.Tip(t) {
		t.Errorf("%+v", result)
	}
}

func TestWhatTheManifestsUpdateWouldRefuseIsRefusedBeforeTheImageIsPushed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*publish.Options)
		says  string
	}{
		"a wrong token":    {func(o *publish.Options) { o.Repository.Credentials.Token = "wrong" }, "give a token that is valid"},
		"a wrong branch":   {func(o *publish.Options) { o.Repository.Branch = "trunk" }, "check the name of the branch"},
		"a wrong path":     {func(o *publish.Options) { o.Update.Path = "blog.yaml" }, "check the path of the manifest"},
		"a wrong resource": {func(o *publish.Options) { o.Update.Selector.Resource = "Deployment/other" }, "Deployment/other"},
		"another host":     {func(o *publish.Options) { o.Repository.URL = "http://127.0.0.1:1/me/tazlab-k8s.git" }, "check the host name"},
		"no signing key":   {func(o *publish.Options) { o.Update.SigningKey = o.Layout + "/oci-layout" }, "OpenSSH private key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := publishtest.New(t)
			o := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
			c.spoil(&o)
			w.MustStay(t, func() {
				_, err := publish.Run(t.Context(), o)
				publishtest.MustSay(t, err, "nothing is changed yet", c.says)
			})
			publishtest.MustHaveNone(t, w.TakeEvents(), publishtest.IsRegistryWrite)
			if err := publish.Check(t.Context(), o); err == nil {
				t.Error("the check by itself found nothing")
			}
		})
	}
}

func TestATokenThatMayOnlyReadIsRefusedBeforeTheImageIsPushed(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	w.Git(t, "config", "http.receivepack", "false")
	_, err := publish.Run(t.Context(), w.Options(t, "1a2b3c4", publishtest.NewImage(t)))
	publishtest.MustSay(t, err, "nothing is changed yet", "give the token write access")
	publishtest.MustHaveNone(t, w.TakeEvents(), publishtest.IsRegistryWrite)
}

func TestATagWithOtherContentIsRefusedAndBothDigestsAreNamed(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	there, other := publishtest.NewImage(t), publishtest.NewImage(t)
	publishtest.MustRun(t, w.Options(t, "1a2b3c4", there))
	for _, dryRun := range []bool{false, true} {
		t.Run(fmt.Sprintf("dry run %t", dryRun), func(t *testing.T) {
			tell.Fault(t, "another image under a tag that is there")
			o := w.Options(t, "1a2b3c4", other)
			o.DryRun = dryRun
			w.MustStay(t, func() {
				_, err := publish.Run(t.Context(), o)
				tell.Observation(t, 0, "%v", err)
				publishtest.MustSay(t, err, "the manifest is untouched", w.Image()+":blog-1a2b3c4", publishtest.DigestOf(t, there), publishtest.DigestOf(t, other))
				var conflict *imagepush.TagConflictError
				if !errors.As(err, &conflict) {
					t.Errorf("%T", err)
				}
			})
			if found, err := imagepush.Lookup(t.Context(), w.Access(), w.Image()+":blog-1a2b3c4"); err != nil || found != publishtest.DigestOf(t, there) {
				t.Errorf("the tag is %s (%v)", found, err)
			}
		})
	}
}

// madeFrom is an image that says what it was made from.
func madeFrom(t *testing.T, base string) v1.Image {
	t.Helper()
	made := inputs.Inputs{Commit: publishtest.CommitOf("1a2b3c4").SHA, Base: base}
	return mutate.Annotations(publishtest.NewImage(t), made.Annotations()).(v1.Image)
}

func TestACommitIsPublishedAgainOnANewerBase(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	first := publishtest.MustRun(t, w.Options(t, "1a2b3c4", madeFrom(t, "nginx:1")))
	image := madeFrom(t, "nginx:2\n\nImage-Digest: a trailer of somebody's") // a registry may hold any text
	o := w.Options(t, "1a2b3c4", image)
	o.Rebuild, o.DryRun = true, true
	w.MustStay(t, func() {
		if dry := publishtest.MustRun(t, o); dry.Image.Tag != "blog-1a2b3c4-r2" || !strings.Contains(dry.GitOps.New, ":blog-1a2b3c4-r2") {
			t.Errorf("%+v", dry)
		}
	})
	o.DryRun = false
	second := publishtest.MustRun(t, o)
	if second.Image.Tag != "blog-1a2b3c4-r2" || second.Image.Digest != publishtest.DigestOf(t, image) || second.GitOps.Image != w.Image()+":blog-1a2b3c4-r2" ||
		!second.Changed || second.Image.Rebuild == nil || second.Image.Rebuild.Was != "blog-1a2b3c4" || !strings.Contains(w.Manifest(t), `:blog-1a2b3c4-r2" # the tag`) {
		t.Errorf("%+v in\n%s", second, w.Manifest(t))
	}
	message := w.Git(t, "log", "-1", "--format=%B", "main")
	for _, want := range []string{
		"Publish " + w.Image() + ":blog-1a2b3c4-r2\n", "\nRebuild number 2 of this commit: since blog-1a2b3c4, the base image was nginx:1 and is nginx:2 Image-Digest: ",
		"\nSource-Commit: " + publishtest.CommitOf("1a2b3c4").SHA, "\nImage-Digest: " + second.Image.Digest,
	} {
		if !strings.Contains(message, want) {
			t.Errorf("no %q in\n%s", want, message)
		}
	}
	if entry := w.History(t)[0]; entry.Rebuild() != 2 || entry.Action != gitops.Publish || entry.Digest != second.Image.Digest {
		t.Errorf("%+v", entry)
	}

	// Once more, there is nothing to do, also where the build differs.
	for _, built := range []v1.Image{image, madeFrom(t, "nginx:2\n\nImage-Digest: a trailer of somebody's")} {
		o = w.Options(t, "1a2b3c4", built)
		o.Rebuild = true
		w.MustStay(t, func() {
			again := publishtest.MustRun(t, o)
			if again.Changed || again.Image.Tag != "blog-1a2b3c4-r2" || again.Image.Digest != second.Image.Digest || again.GitOps.Commit != second.GitOps.Commit {
				t.Errorf("%+v", again)
			}
		})
	}
	if found, err := imagepush.Lookup(t.Context(), w.Access(), w.Image()+":blog-1a2b3c4"); err != nil || found != first.Image.Digest {
		t.Errorf("the first tag is %s (%v)", found, err)
	}
}

// Whoever has the registry's password knows each commit's tag before it is published, and what its annotation will
// say.
func TestAnImageThatSomebodyPushedFirstIsNotPublished(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*publish.Options){
		"by its tag":       func(*publish.Options) {},
		"by its digest":    func(o *publish.Options) { o.Update.PinDigest = true },
		"to a branch":      func(o *publish.Options) { o.Update.PushBranch = "proposed" },
		"in a dry run":     func(o *publish.Options) { o.DryRun = true },
		"with a signature": func(o *publish.Options) { o.Signer = publishtest.Keys().Signer },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell.Fault(t, "an image with the annotation of a commit that is published later, %s", name)
			w := publishtest.New(t)
			built, forged := madeFrom(t, "nginx"), madeFrom(t, "nginx")
			w.Overwrite(t, "blog-1a2b3c4", forged)
			o := w.Options(t, "1a2b3c4", built)
			change(&o)
			w.MustStay(t, func() {
				_, err := publish.Run(t.Context(), o)
				tell.Observation(t, 0, "%v", err)
				publishtest.MustSay(t, err, "the manifest is untouched", "--rebuild",
					publishtest.DigestOf(t, forged), publishtest.DigestOf(t, built))
			})
			o.Rebuild = true
			result := publishtest.MustRun(t, o)
			if result.Image.Tag != "blog-1a2b3c4-r2" || result.Image.Digest != publishtest.DigestOf(t, built) {
				t.Errorf("%+v", result.Image)
			}
		})
	}
}

// A site that shows the time has other bytes in each build. Its commit is published once all the same, since the
// GitOps repository knows the first one.
func TestAnotherBuildOfACommitThatIsPublishedOrProposedIsThatImage(t *testing.T) {
	t.Parallel()
	for _, branch := range []string{"", "proposed"} {
		w := publishtest.New(t)
		first := madeFrom(t, "nginx")
		for _, image := range []v1.Image{first, madeFrom(t, "nginx")} {
			o := w.Options(t, "1a2b3c4", image)
			o.Update.PushBranch = branch
			if result := publishtest.MustRun(t, o); result.Image.Digest != publishtest.DigestOf(t, first) {
				t.Errorf("%q: %+v", branch, result.Image)
			}
		}
		// What the registry has in its place later is not what was published.
		w.Overwrite(t, "blog-1a2b3c4", madeFrom(t, "nginx"))
		o := w.Options(t, "1a2b3c4", madeFrom(t, "nginx"))
		o.Update.PushBranch = branch
		w.MustStay(t, func() {
			_, err := publish.Run(t.Context(), o)
			publishtest.MustSay(t, err, "the manifest is untouched", "neither the GitOps repository nor a signature")
		})
	}
}

func TestTheTagLatestIsNeverPublished(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	o := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	o.TagPrefix, o.Commit = "", worktree.Commit{SHA: publishtest.CommitOf("1a2b3c4").SHA, Short: "latest"}
	w.MustStay(t, func() {
		_, err := publish.Run(t.Context(), o)
		publishtest.MustSay(t, err, "the manifest is untouched", "name a tag of its own for each content")
		events := w.TakeEvents()
		publishtest.MustHaveNone(t, events, publishtest.IsRegistryWrite)
		publishtest.MustHaveNone(t, events, publishtest.IsGitPush)
	})
}

func TestADryRunTellsTheChangeAndMakesNone(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	o := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	o.DryRun = true
	w.MustStay(t, func() {
		result := publishtest.MustRun(t, o)
		publishtest.MustHaveNone(t, w.TakeEvents(), publishtest.IsRegistryWrite)
		if !result.DryRun || !result.GitOps.Changed || result.GitOps.Commit != "" || result.Image.AlreadyThere {
			t.Errorf("%+v", result)
		}
		text := result.Text()
		for _, want := range []string{"Dry run: nothing was pushed", "not in the registry yet", `-          image: "` + w.Image() + `:blog-0000000"`, `+          image: "` + w.Image() + `:blog-1a2b3c4"`} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	})
}

func TestADryRunAsksARegistryThatIsDownTwice(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	o := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	var asked atomic.Int32
	w.SetAnswer(func(rw http.ResponseWriter, r *http.Request) bool {
		asked.Add(1)
		rw.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	o.DryRun, o.Registry.Tries = true, 0
	_, err := publish.Run(t.Context(), o)
	publishtest.MustSay(t, err, "503 Service Unavailable")
	if n := asked.Load(); n != 2 {
		t.Errorf("it was asked %d times", n)
	}
}

func TestADryRunThatFailsAtTheManifestDoesNotClaimAnImage(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	o := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	o.DryRun, o.Update.Path = true, "apps/missing.yaml"
	_, err := publish.Run(t.Context(), o)
	publishtest.MustSay(t, err, "apps/missing.yaml")
	if strings.Contains(err.Error(), "is in the registry") {
		t.Errorf("got %v", err)
	}
}

func TestStepsThatWereDoneBeforeAreInTheReport(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	o := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	o.Began, o.Steps = time.Now().Add(-time.Minute), []report.Step{{Name: "build the site", Seconds: 12}}
	result := publishtest.MustRun(t, o)
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

func TestTwentyPublishersAtOnceLoseNoCommit(t *testing.T) {
	t.Parallel()
	const publishers = 20
	w := publishtest.New(t)
	before := w.Tip(t)
	results := make([]report.Result, publishers)
	var running sync.WaitGroup
	for i := range publishers {
		o := w.Options(t, fmt.Sprintf("%07x", 0xa000000+i), publishtest.NewImage(t))
		o.Update.Patience = 10 * time.Minute // a slow machine is no failure
		running.Go(func() {
			var err error
			if results[i], err = publish.Run(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	tell.Fault(t, "%d publishers at once", publishers)
	running.Wait()

	commits := strings.Fields(w.Git(t, "rev-list", before+"..main"))
	if len(commits) != publishers {
		t.Errorf("%d commits, want %d", len(commits), publishers)
	}
	raced := 0
	for i, result := range results {
		if !slices.Contains(commits, result.GitOps.Commit) {
			t.Errorf("the commit of publisher %d is not on the branch: %q", i, result.GitOps.Commit)
		}
		if want := w.Image() + ":" + result.Image.Tag; !strings.Contains(w.Git(t, "show", result.GitOps.Commit+":"+publishtest.ManifestPath), want) {
			t.Errorf("%s does not name %s", result.GitOps.Commit, want)
		}
		if result.GitOps.Attempts > 1 {
			raced++
		}
	}
	tell.Observation(t, 0, "%d commits for %d publishers, of whom %d met another", len(commits), publishers, raced)
	if raced == 0 {
		t.Error("nobody met another: the test proved nothing")
	}
	if published := w.History(t); len(published) < publishers || published[0].Action != gitops.Publish {
		t.Errorf("the history has %d entries", len(published))
	}
}
