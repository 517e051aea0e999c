package gitops

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/gitserver/gitservertest"
	"tazlab.net/castle/ci/publish/manifest"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
)

func TestAnUpdateIsOneCommitOfOneLineWithTrailers(t *testing.T) {
	t.Parallel()
	r := newRemote(t, map[string]string{manifestPath: deployment, "README.md": "hello\n"})
	start := strings.TrimSpace(r.git(t, "rev-parse", "main"))

	request := publish("3f2a1bc")
	request.Author = Identity{Name: "A Publisher", Email: "publisher@example.org"}
	result := mustUpdate(t, r.repository, request)

	if !result.Changed || result.Branch != "main" || result.Attempts != 1 {
		t.Errorf("result = %+v", result)
	}
	if tip := strings.TrimSpace(r.git(t, "rev-parse", "main")); tip != result.Commit {
		t.Errorf("main is at %s, the result says %s", tip, result.Commit)
	}
	if parent := strings.TrimSpace(r.git(t, "rev-parse", "main^")); parent != start {
		t.Errorf("the commit's parent is %s, not the old tip %s", parent, start)
	}
	if got, want := r.git(t, "diff", "--numstat", start, "main"), "1\t1\t"+manifestPath+"\n"; got != want {
		t.Errorf("diff = %q, want %q", got, want)
	}
	want := strings.Replace(deployment, `net:blog-0000000"`, `net:blog-3f2a1bc"`, 1)
	if got := r.git(t, "show", "main:"+manifestPath); got != want {
		t.Errorf("manifest:\n%s\nwant:\n%s", got, want)
	}
	wantMessage := `Publish tazzo/tazlab.net:blog-3f2a1bc

Was tazzo/tazlab.net:blog-0000000.

Castle-Action: publish
Source-Commit: 3f2a1bc000000000000000000000000000000000
Source-Repository: https://github.com/example/blog
Image-Digest: ` + digestOf("3f2a1bc")
	if got := strings.TrimSpace(r.git(t, "log", "-1", "--format=%B", "main")); got != wantMessage {
		t.Errorf("message:\n%s\nwant:\n%s", got, wantMessage)
	}
	if got := r.git(t, "log", "-1", "--format=%an %ae %cn %ce", "main"); got != "A Publisher publisher@example.org A Publisher publisher@example.org\n" {
		t.Errorf("author and committer: %s", got)
	}
	if !strings.Contains(result.Change.OldLine, "blog-0000000") || !strings.Contains(result.Change.NewLine, "blog-3f2a1bc") {
		t.Errorf("lines of the change: %q, %q", result.Change.OldLine, result.Change.NewLine)
	}
	if result.Timings.Clone <= 0 || result.Timings.Commit <= 0 || result.Timings.Push <= 0 {
		t.Errorf("timings = %+v", result.Timings)
	}
	r.git(t, "fsck", "--strict")
}

func TestPublishingTheSameImageAgainMakesNoCommit(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	first := mustUpdate(t, r.repository, publish("3f2a1bc"))
	second := mustUpdate(t, r.repository, publish("3f2a1bc"))

	if second.Changed || second.Commit != first.Commit {
		t.Errorf("second result = %+v, want no change at %s", second, first.Commit)
	}
	if count := strings.TrimSpace(r.git(t, "rev-list", "--count", "main")); count != "2" {
		t.Errorf("%s commits, want 2", count)
	}
}

func TestADryRunChangesNothingAndSaysWhatWould(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	request := publish("3f2a1bc")
	request.DryRun, request.Digest = true, ""
	result := mustUpdate(t, r.repository, request)

	if !result.Changed || result.Commit != "" || result.Change.New.Tag != "blog-3f2a1bc" {
		t.Errorf("result = %+v", result)
	}
	if count := strings.TrimSpace(r.git(t, "rev-list", "--count", "--all")); count != "1" {
		t.Errorf("%s commits, want 1", count)
	}
}

func TestAPinnedDigestStandsInTheManifest(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	request := publish("3f2a1bc")
	request.PinDigest = true
	mustUpdate(t, r.repository, request)
	want := `image: "tazzo/tazlab.net:blog-3f2a1bc@` + request.Digest + `"  # the tag`
	if got := r.git(t, "show", "main:"+manifestPath); !strings.Contains(got, want) {
		t.Errorf("manifest has no %s:\n%s", want, got)
	}
}

func TestEveryOtherByteOfACRLFManifestWithAttributesIsKept(t *testing.T) {
	t.Parallel()
	crlf := "\xef\xbb\xbf" + strings.ReplaceAll(deployment, "\n", "\r\n") + "# no newline at the end, trailing blanks  \t"
	r := newRemote(t, map[string]string{
		manifestPath:     crlf,
		".gitattributes": "*.yaml text=auto eol=lf\n* text\n",
	})
	mustUpdate(t, r.repository, publish("3f2a1bc"))
	want := strings.Replace(crlf, `net:blog-0000000"`, `net:blog-3f2a1bc"`, 1)
	if got := r.git(t, "cat-file", "blob", "main:"+manifestPath); got != want {
		t.Errorf("manifest = %q\nwant %q", got, want)
	}
}

// TestPublishersAtOnceEachMakeTheirCommit is also run with CASTLE_PUBLISHERS of them, by "make publishers".
func TestPublishersAtOnceEachMakeTheirCommit(t *testing.T) {
	t.Parallel()
	publishers := 20
	if text := os.Getenv("CASTLE_PUBLISHERS"); text != "" {
		var err error
		if publishers, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	r := newRemote(t, nil)
	start := strings.TrimSpace(r.git(t, "rev-parse", "main"))

	began := time.Now()
	results := make([]UpdateResult, publishers)
	var group sync.WaitGroup
	for i := range publishers {
		group.Go(func() {
			request := publish(short(i))
			request.Patience = time.Hour // a slow machine is no failure
			result, err := Update(t.Context(), r.repository, request)
			if err != nil {
				t.Errorf("publisher %d: %v", i, err)
			}
			results[i] = result
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}

	commits := strings.Fields(r.git(t, "rev-list", start+"..main"))
	if len(commits) != publishers {
		t.Errorf("%d commits, want %d", len(commits), publishers)
	}
	onMain := map[string]bool{}
	for _, commit := range commits {
		onMain[commit] = true
		if got, want := r.git(t, "diff", "--numstat", commit+"^", commit), "1\t1\t"+manifestPath+"\n"; got != want {
			t.Errorf("commit %s changes %q, want one line", commit, got)
		}
	}
	attempts := 0
	for i, result := range results {
		if !result.Changed || !onMain[result.Commit] {
			t.Errorf("the commit of publisher %d is lost: %+v", i, result)
		}
		attempts += result.Attempts
	}
	if attempts == publishers {
		t.Error("no publisher met another; the race was not run")
	}
	r.git(t, "fsck", "--strict")
	t.Logf("%d publishers, %d commits, %d attempts, in %s", publishers, len(commits), attempts, time.Since(began).Round(time.Second))
}

func TestAPushInBetweenIsBuiltUpon(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]map[string]string{
		"to another file": {"README.md": "changed\n"},
		"to another line": {manifestPath: strings.Replace(deployment, "containerPort: 80", "containerPort: 8080", 1)},
		"next to ours":    {manifestPath: strings.Replace(deployment, "# the tag", "# the tag of the image", 1)},
		"of what we want": {manifestPath: strings.Replace(deployment, `blog-0000000"`, `blog-3f2a1bc"`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, nil)
			var other string
			r.beforeFirstPush(func() { other = r.commit(t, "Meanwhile", meanwhile) })
			result := mustUpdate(t, r.repository, publish("3f2a1bc"))

			if result.Attempts != 2 {
				t.Errorf("%d attempts, want 2", result.Attempts)
			}
			if result.Changed == (name == "of what we want") {
				t.Errorf("changed = %v", result.Changed)
			}
			if log := r.git(t, "rev-list", "main"); !strings.Contains(log, other) {
				t.Error("the commit made meanwhile is lost")
			}
			if got := r.git(t, "show", "main:"+manifestPath); !strings.Contains(got, `image: "tazzo/tazlab.net:blog-3f2a1bc"`) {
				t.Errorf("manifest:\n%s", got)
			}
			for _, content := range meanwhile {
				if kept := r.git(t, "diff", "--numstat", other, "main"); result.Changed && kept != "1\t1\t"+manifestPath+"\n" {
					t.Errorf("on top of the other commit (%.20q…) we changed %q", content, kept)
				}
			}
		})
	}
}

func TestADecisionMadeMeanwhileIsAConflict(t *testing.T) {
	t.Parallel()
	byHand := strings.Replace(deployment, `blog-0000000"`, `blog-9999999"`, 1)
	for name, story := range map[string]struct {
		meanwhile func(t *testing.T, r *remote)
		says      string
	}{
		"a person set the reference": {
			func(t *testing.T, r *remote) {
				r.commit(t, "Pin the old image", map[string]string{manifestPath: byHand})
			},
			`set meanwhile from tazzo/tazlab.net:blog-0000000 to tazzo/tazlab.net:blog-9999999 by Some Person`,
		},
		"a rollback set the reference": {
			func(t *testing.T, r *remote) {
				r.commit(t, "Roll back\n\nCastle-Action: rollback\n", map[string]string{manifestPath: byHand})
			},
			`"Roll back"`,
		},
		"the manifest was moved": {
			func(t *testing.T, r *remote) {
				r.commit(t, "Move", map[string]string{"apps/blog/hugo-blog.yaml": deployment}, manifestPath)
			},
			`did you mean apps/blog/hugo-blog.yaml`,
		},
		"the image is in the manifest no longer": {
			func(t *testing.T, r *remote) {
				r.commit(t, "Rename", map[string]string{manifestPath: strings.ReplaceAll(deployment, "tazzo/", "other/")})
			},
			`no longer holds image tazzo/tazlab.net exactly once`,
		},
		"the branch was rewritten with another reference": {
			func(t *testing.T, r *remote) {
				rewritten := r.commitOn(t, "rewritten", "New start", map[string]string{manifestPath: byHand})
				r.git(t, "update-ref", "refs/heads/main", rewritten)
			},
			`rewritten meanwhile`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tell.Fault(t, "before the push, %s", name)
			r := newRemote(t, nil)
			var tip string
			r.beforeFirstPush(func() {
				story.meanwhile(t, r)
				tip = r.git(t, "rev-parse", "main")
			})
			result, err := Update(t.Context(), r.repository, publish("3f2a1bc"))
			if !errors.Is(err, ErrConflict) {
				t.Fatalf("error = %v, want a conflict", err)
			}
			tell.Observation(t, 0, "%v", err)
			expectOneLine(t, err, story.says)
			if result.Attempts != 2 {
				t.Errorf("%d attempts, want 2", result.Attempts)
			}
			if r.git(t, "rev-parse", "main") != tip {
				t.Error("the branch was changed in spite of the conflict")
			}
		})
	}
}

// A publish that failed is put back, and not one that came after it, whenever that came.
func TestWhatIsReplacedIsWhatWasToBe(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	failed := mustUpdate(t, r.repository, publish("1111111"))
	back := publish("2222222")
	back.Replaces = failed.Change.New.String()
	r.beforeFirstPush(func() {
		r.commit(t, "Publish 3333333\n\n"+trailerAction+": "+string(Publish), map[string]string{manifestPath: strings.Replace(deployment, `blog-0000000"`, `blog-3333333"`, 1)})
	})
	if _, err := Update(t.Context(), r.repository, back); !errors.Is(err, ErrConflict) {
		t.Errorf("error = %v, want a conflict", err)
	}
	if got := r.git(t, "show", "main:"+manifestPath); !strings.Contains(got, "blog-3333333") {
		t.Errorf("manifest:\n%s", got)
	}
}

func TestTheSameUpdateRunAgainAfterAConflictGoesThrough(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	r.beforeFirstPush(func() {
		r.commit(t, "Pin", map[string]string{manifestPath: strings.Replace(deployment, `blog-0000000"`, `blog-9999999"`, 1)})
	})
	if _, err := Update(t.Context(), r.repository, publish("3f2a1bc")); !errors.Is(err, ErrConflict) {
		t.Fatalf("error = %v, want a conflict", err)
	}
	if result := mustUpdate(t, r.repository, publish("3f2a1bc")); !result.Changed || result.Change.Old.Tag != "blog-9999999" {
		t.Errorf("result = %+v", result)
	}
}

func TestABranchThatNeverRestsEndsWithThePatience(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	// The ref moves while the server handles the push, so that it is the server that refuses.
	r.hook(t, `unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
new=$(git -c user.name=x -c user.email=x@localhost commit-tree -p "$2" -m busy "$2^{tree}") && git update-ref "$1" "$new"
`)
	request := publish("3f2a1bc")
	request.Patience = 15 * time.Second // for more than one attempt on a busy machine
	result, err := Update(t.Context(), r.repository, request)
	if !errors.Is(err, git.ErrNonFastForward) {
		t.Fatalf("error = %v, want non-fast-forward", err)
	}
	if result.Attempts < 2 {
		t.Errorf("%d attempts, want some", result.Attempts)
	}
	expectOneLine(t, err, "times in a row")
}

func TestWhatCannotBeMendedByAnotherTryEndsAtOnce(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		prepare func(t *testing.T, r *remote, request *UpdateRequest)
		kind    error
		says    string
	}{
		"a protected branch": {
			func(t *testing.T, r *remote, _ *UpdateRequest) {
				if err := gitservertest.Protect(t.Context(), r.bare, "main"); err != nil {
					t.Fatal(err)
				}
			}, git.ErrProtectedBranch, "GH006: Protected branch update failed for refs/heads/main",
		},
		"a wrong token": {
			func(t *testing.T, r *remote, _ *UpdateRequest) { r.repository.Credentials.Token = "wrong-" + canary },
			git.ErrUnauthorized, "give a token that is valid",
		},
		"no token": {
			func(t *testing.T, r *remote, _ *UpdateRequest) { r.repository.Credentials.Token = "" },
			git.ErrUnauthorized, "give a token that is valid",
		},
		"a token that may only read": {
			func(t *testing.T, r *remote, _ *UpdateRequest) { r.repository.Credentials.Token = "read-only" },
			git.ErrForbidden, "write access",
		},
		"a repository that is not there": {
			func(t *testing.T, r *remote, _ *UpdateRequest) {
				r.repository.URL = strings.Replace(r.repository.URL, "tazlab-k8s", "nothing", 1)
			}, git.ErrRepositoryNotFound, "nothing.git",
		},
		"a branch that is not there": {
			func(t *testing.T, r *remote, _ *UpdateRequest) { r.repository.Branch = "trunk" },
			git.ErrRefNotFound, "trunk",
		},
		"a path that is not there": {
			func(t *testing.T, r *remote, request *UpdateRequest) { request.Path = "apps/hugo-blog.yaml" },
			ErrPathNotFound, "did you mean " + manifestPath,
		},
		"a path that is a folder": {
			func(t *testing.T, r *remote, request *UpdateRequest) { request.Path = "apps/base" },
			ErrPathNotFound, "apps/base is a folder",
		},
		"a host that does not answer": {
			func(t *testing.T, r *remote, _ *UpdateRequest) {
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				r.repository.URL = "http://" + listener.Addr().String() + "/tazlab-k8s.git"
				if err := listener.Close(); err != nil {
					t.Fatal(err)
				}
			}, git.ErrUnreachable, "check the host name",
		},
		"a signing key that does not parse": {
			func(t *testing.T, r *remote, request *UpdateRequest) {
				request.SigningKey = filepath.Join(t.TempDir(), "key")
				if err := os.WriteFile(request.SigningKey, []byte("no key\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}, ErrSigning, "OpenSSH private key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t, nil)
			tip := r.git(t, "rev-parse", "main")
			request := publish("3f2a1bc")
			story.prepare(t, r, &request)
			result, err := Update(t.Context(), r.repository, request)
			if !errors.Is(err, story.kind) {
				t.Fatalf("error = %v, want %v", err, story.kind)
			}
			expectOneLine(t, err, story.says)
			if result.Attempts > 1 {
				t.Errorf("%d attempts, want 1", result.Attempts)
			}
			if r.git(t, "rev-parse", "main") != tip {
				t.Error("the branch was changed in spite of the error")
			}
		})
	}
}

func TestAnImageThatIsNotInTheManifestIsAnErrorOfTheManifest(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	request := publish("3f2a1bc")
	request.Selector.Image = "tazzo/other"
	_, err := Update(t.Context(), r.repository, request)
	var notFound *manifest.NotFoundError
	if !errors.As(err, &notFound) {
		t.Fatalf("error = %v, want a *manifest.NotFoundError", err)
	}
}

func TestARequestThatMakesNoSenseIsRefusedBeforeTheRemoteIsAsked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Repository, *UpdateRequest){
		"no URL":                          func(r *Repository, _ *UpdateRequest) { r.URL = "" },
		"a URL with a token":              func(r *Repository, _ *UpdateRequest) { r.URL = "https://me:" + canary + "@example.org/x.git" },
		"a URL that is an option":         func(r *Repository, _ *UpdateRequest) { r.URL = "--upload-pack=x" },
		"a branch that is an option":      func(r *Repository, _ *UpdateRequest) { r.Branch = "-x" },
		"no path":                         func(_ *Repository, r *UpdateRequest) { r.Path = "" },
		"a path outside":                  func(_ *Repository, r *UpdateRequest) { r.Path = "../x.yaml" },
		"an absolute path":                func(_ *Repository, r *UpdateRequest) { r.Path = "/x.yaml" },
		"no tag":                          func(_ *Repository, r *UpdateRequest) { r.Tag = "" },
		"the tag latest":                  func(_ *Repository, r *UpdateRequest) { r.Tag = "latest" },
		"no digest":                       func(_ *Repository, r *UpdateRequest) { r.Digest = "" },
		"a digest that is none":           func(_ *Repository, r *UpdateRequest) { r.Digest = "sha256:abc" },
		"a commit that is none":           func(_ *Repository, r *UpdateRequest) { r.SourceCommit = "main" },
		"a subject of two lines":          func(_ *Repository, r *UpdateRequest) { r.Subject = "a\nCastle-Action: publish" },
		"a source with a line break":      func(_ *Repository, r *UpdateRequest) { r.SourceRepository = "https://x\ny" },
		"a signing key that is not there": func(_ *Repository, r *UpdateRequest) { r.SigningKey = "/nonexistent" },
		"an unknown action":               func(_ *Repository, r *UpdateRequest) { r.Action = "delete" },
		"a push branch that is a ref":     func(_ *Repository, r *UpdateRequest) { r.PushBranch = "refs/heads/x" },
	} {
		t.Run(name, func(t *testing.T) {
			repository, request := Repository{URL: "http://127.0.0.1:1/x.git"}, publish("3f2a1bc")
			change(&repository, &request)
			_, err := Update(t.Context(), repository, request)
			if !errors.Is(err, ErrRequest) {
				t.Fatalf("error = %v, want an invalid request", err)
			}
			expectOneLine(t, err, "")
		})
	}
}

func TestAPushBranchGetsTheCommitAndMainStays(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	main := r.git(t, "rev-parse", "main")
	if err := gitservertest.Protect(t.Context(), r.bare, "main"); err != nil {
		t.Fatal(err)
	}
	request := publish("3f2a1bc")
	request.PushBranch = "castle/blog-3f2a1bc"

	first := mustUpdate(t, r.repository, request)
	if !first.Changed || first.Branch != request.PushBranch {
		t.Errorf("first result = %+v", first)
	}
	if r.git(t, "rev-parse", "main") != main {
		t.Error("main was changed")
	}
	if got := r.git(t, "diff", "--numstat", "main", request.PushBranch); got != "1\t1\t"+manifestPath+"\n" {
		t.Errorf("the branch differs from main by %q", got)
	}

	t.Run("again, it is there already", func(t *testing.T) {
		second := mustUpdate(t, r.repository, request)
		if second.Changed || second.Commit != first.Commit || second.Branch != request.PushBranch {
			t.Errorf("second result = %+v", second)
		}
	})
	t.Run("with another image, the commit goes on top", func(t *testing.T) {
		other := publish("4444444")
		other.PushBranch = request.PushBranch
		third := mustUpdate(t, r.repository, other)
		if parent := strings.TrimSpace(r.git(t, "rev-parse", third.Commit+"^")); parent != first.Commit {
			t.Errorf("parent = %s, want %s", parent, first.Commit)
		}
	})
	t.Run("when main says so, no branch is needed", func(t *testing.T) {
		merged := publish("5555555")
		merged.PushBranch = "castle/blog-5555555"
		r.commit(t, "Merge", map[string]string{manifestPath: strings.Replace(deployment, `blog-0000000"`, `blog-5555555"`, 1)})
		result := mustUpdate(t, r.repository, merged)
		if result.Changed || result.Branch != "main" {
			t.Errorf("result = %+v", result)
		}
		if listed := r.git(t, "for-each-ref", "refs/heads/castle/blog-5555555"); listed != "" {
			t.Errorf("a branch was made: %s", listed)
		}
	})
}

func TestABranchThatAppearsMeanwhileIsBuiltUpon(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	request := publish("3f2a1bc")
	request.PushBranch = "castle/blog"
	r.beforeFirstPush(func() {
		r.commitOn(t, "castle/blog", "Other", map[string]string{manifestPath: deployment, "README.md": "other\n"})
	})
	result := mustUpdate(t, r.repository, request)
	if result.Attempts != 2 || result.Branch != "castle/blog" {
		t.Errorf("result = %+v", result)
	}
	if got := r.git(t, "show", "castle/blog:README.md"); got != "other\n" {
		t.Errorf("README.md = %q", got)
	}
}

func TestACommitSignedWithAnSSHKeyVerifies(t *testing.T) {
	t.Parallel()
	keygen := needs.Command(t, "openssh-client", "ssh-keygen")
	r := newRemote(t, nil)
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if out, err := exec.CommandContext(t.Context(), keygen, "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	allowed := filepath.Join(dir, "allowed")
	if err := os.WriteFile(allowed, []byte("publisher@example.org "+string(public)), 0o600); err != nil {
		t.Fatal(err)
	}

	request := publish("3f2a1bc")
	request.SigningKey = key
	request.Author.Email = "publisher@example.org"
	result := mustUpdate(t, r.repository, request)
	r.git(t, "-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", result.Commit)
}

func TestALocalRepositoryNeedsNoServer(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"path", "file URL"} {
		t.Run(form, func(t *testing.T) {
			r := newRemote(t, nil)
			url := r.bare
			if form == "file URL" {
				url = "file://" + r.bare
			}
			if os.Geteuid() == 0 { // as a mounted repository of another owner
				if err := os.Chown(r.bare, 12345, 12345); err != nil {
					t.Fatal(err)
				}
			}
			if result := mustUpdate(t, Repository{URL: url}, publish("3f2a1bc")); !result.Changed {
				t.Errorf("result = %+v", result)
			}
		})
	}
}

func TestAServerWithoutPartialClonesWillDo(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	r.git(t, "config", "uploadpack.allowFilter", "false")
	r.git(t, "config", "--unset", "uploadpack.allowAnySHA1InWant")
	r.beforeFirstPush(func() { r.commit(t, "Meanwhile", map[string]string{"README.md": "x\n"}) })
	if result := mustUpdate(t, r.repository, publish("3f2a1bc")); !result.Changed || result.Attempts != 2 {
		t.Errorf("result = %+v", result)
	}
	entries, err := History(t.Context(), r.repository, manifestPath, blog, 0)
	if err != nil || len(entries) != 2 {
		t.Errorf("history = %+v, %v", entries, err)
	}
}

func TestADeadlineEndsAnUpdateThatHangs(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts by its backlog, never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	repository := Repository{URL: "http://" + listener.Addr().String() + "/x.git", TempDir: t.TempDir()}
	start := time.Now()
	_, err = Update(withTimeout(t, 300*time.Millisecond), repository, publish("3f2a1bc"))
	if err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("error = %v, want a deadline", err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
	expectEmpty(t, repository.TempDir)
}

// expectOneLine checks that an error is one line without the token that says something.
func expectOneLine(t *testing.T, err error, says string) {
	t.Helper()
	if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, canary) || !strings.Contains(text, says) {
		t.Errorf("error = %q\nwant one line with %q and without the token", text, says)
	}
	t.Log(err)
}

func expectEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", dir, left, err)
	}
}
