package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"tazlab.net/castle/ci/base/digest"
	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/retry"
	"tazlab.net/castle/ci/base/tracing"
	"tazlab.net/castle/ci/publish/manifest"
)

// DefaultPatience is how long an update goes on when others push to the same branch.
const DefaultPatience = 2 * time.Minute

// UpdateRequest says which reference shall say what.
type UpdateRequest struct {
	// Path is the manifest's, from the top of the repository.
	Path string
	// Selector addresses the reference in it.
	Selector manifest.Selector
	// Tag is what the reference shall say. "latest" is refused: it could not be rolled back.
	Tag string
	// Digest of the image, as the registry confirmed it ("sha256:…"). Required except in a dry run, since a manifest never
	// points at an image that is not there. The commit's trailer records it.
	Digest string
	// Unrecorded keeps Digest out of the trailer: nothing tells that it is the image that is meant.
	Unrecorded bool
	// PinDigest also writes the digest into the reference.
	PinDigest bool

	// Replaces is what the reference must say at the outset, in full; what else it says is ErrConflict. Empty means anything.
	Replaces string

	// Action is Publish where empty.
	Action Action
	// SourceCommit is what the image was built from: hexadecimal, 7 to 64 characters.
	SourceCommit string
	// SourceRepository is the URL the commit is from; user information is dropped.
	SourceRepository string
	// Subject is the first line of the commit message; empty means one that names the image.
	Subject string
	// Because is a sentence of the message that says why; empty means none.
	Because string
	// Author is also the committer; empty fields mean those of DefaultIdentity.
	Author Identity
	// SigningKey is the path of an OpenSSH key to sign the commit with; empty means unsigned.
	SigningKey string

	// PushBranch gets the commit instead of the repository's branch, to open a pull request from. Where it exists already,
	// the commit goes on top of it. One name per published image keeps each pull request to one line.
	PushBranch string
	// Propose makes PushBranch that of a pull request: one commit on top of the repository's branch, made anew when that has
	// moved. A branch that holds anybody else's commits is ErrForeign.
	Propose bool
	// DryRun does everything but commit and push.
	DryRun bool
	// Patience is how long to go on when others push to the same branch; zero means DefaultPatience.
	Patience time.Duration
}

// UpdateResult says what an update did.
type UpdateResult struct {
	// Changed is false where the reference said so already; then nothing was committed. In a dry run it says whether
	// there would have been a commit.
	Changed bool
	// Commit is the new commit; without a change the tip of Branch that was found to say so; in a dry run with a change
	// empty.
	Commit string
	// Branch is where Commit is.
	Branch string
	// Message is the commit's, where it was proposed.
	Message string
	// Change has the reference before and after, and the line that changed.
	Change manifest.Change
	// Attempts counts the pushes, or is 1 where none was needed. Above 1, others were faster.
	Attempts int
	// Timings are sums over all attempts; waiting between them is in none.
	Timings Timings
}

// Timings are the durations of an update's steps.
type Timings struct {
	Clone  time.Duration // fetching and reading
	Commit time.Duration // editing and making the commit
	Push   time.Duration
}

var (
	commitName = regexp.MustCompile(`^[0-9a-f]{7,64}$`)
)

// normalize checks the request and fills in what was left empty.
func (r UpdateRequest) normalize() (UpdateRequest, error) {
	invalid := func(format string, values ...any) error {
		return fmt.Errorf("%w: %w", ErrRequest, fmt.Errorf(format, values...))
	}
	if r.Action == "" {
		r.Action = Publish
	}
	if r.Patience <= 0 {
		r.Patience = DefaultPatience
	}
	switch {
	case r.Action != Publish && r.Action != Rollback:
		return r, invalid("unknown action %q", r.Action)
	case r.Tag == "":
		return r, invalid("the image has no tag")
	case r.Tag == "latest":
		return r, invalid("the tag latest cannot be rolled back; tag the image by its commit")
	case r.Digest == "" && !r.DryRun:
		return r, invalid("no digest of %s: the manifest is changed only after the registry confirmed the image", r.Tag)
	case r.Digest != "" && !digest.Valid(r.Digest):
		return r, invalid("%q is no digest of the form sha256:<64 hexadecimal digits>", r.Digest)
	case r.SourceCommit != "" && !commitName.MatchString(r.SourceCommit):
		return r, invalid("%q is no commit; give 7 to 64 hexadecimal digits", r.SourceCommit)
	case strings.ContainsAny(r.SourceRepository, " \n\r\x00"):
		return r, invalid("%q is no URL of a repository", redact.URL(r.SourceRepository))
	case strings.ContainsAny(r.Subject, "\n\r\x00"):
		return r, invalid("the commit's subject has more than one line")
	case strings.ContainsAny(r.Because, "\n\r\x00"):
		return r, invalid("the reason for the commit has more than one line")
	case strings.ContainsAny(r.Author.Name+r.Author.Email, "<>\n\r\x00"):
		return r, invalid("the author's name and address must not hold line breaks or angle brackets")
	}
	if r.SigningKey != "" {
		if _, err := os.Stat(r.SigningKey); err != nil {
			return r, invalid("the signing key: %w", err)
		}
	}
	if r.PushBranch != "" {
		if err := git.CheckBranch(r.PushBranch); err != nil {
			return r, invalid("%w", err)
		}
	}
	if r.Propose && r.PushBranch == "" {
		return r, invalid("a pull request needs a branch of its own")
	}
	return r, nil
}

// Update makes the reference say what was asked for and pushes that as one commit; it does nothing where it says so already.
// A branch that others push to is retried until the request's patience or the context ends. Errors are *Error, ErrRequest
// before anything was asked of the remote, and those of package manifest below an *Error.
func Update(ctx context.Context, repository Repository, request UpdateRequest) (UpdateResult, error) {
	return update(ctx, repository, request, false)
}

// Check fails where Update would now, and pushes nothing: write access is asked for by a push that git only rehearses. What
// the host refuses when a push arrives, such as one to a protected branch, it does not find. The digest may be unknown.
func Check(ctx context.Context, repository Repository, request UpdateRequest) error {
	request.Digest = cmp.Or(request.Digest, "sha256:"+strings.Repeat("0", 64))
	_, err := update(ctx, repository, request, true)
	return err
}

func update(ctx context.Context, repository Repository, request UpdateRequest, rehearsal bool) (UpdateResult, error) {
	request, err := request.normalize()
	if err != nil {
		return UpdateResult{}, err
	}
	w, err := openWorkspace(ctx, repository, request.Path)
	if err != nil {
		return UpdateResult{}, err
	}
	w.rehearsal = rehearsal
	u := &updater{workspace: w, request: request, target: w.repository.Branch}
	if request.PushBranch != "" {
		u.target = request.PushBranch
	}
	result, err := u.run(ctx)
	return result, errors.Join(err, w.Close())
}

// updater is one update in progress.
type updater struct {
	*workspace
	request UpdateRequest
	target  string // the branch that is pushed to

	first  string             // tip of the repository's branch when the update began
	before manifest.Reference // what the manifest said there
	result UpdateResult
}

// run tries until nobody else pushes in between.
func (u *updater) run(ctx context.Context) (UpdateResult, error) {
	pauses := &pauses{}
	policy := retry.Policy{Doing: "the push to branch " + u.target, Pauses: pauses, For: u.request.Patience,
		Seen: func(error) string { return "somebody else was faster" }}
	err := policy.Do(ctx, func() error {
		u.result.Attempts++
		start := time.Now()
		attempt, span := tracing.Begin(ctx, fmt.Sprintf("attempt %d", u.result.Attempts))
		err := u.attempt(attempt)
		tracing.End(span, err)
		pauses.attempt = time.Since(start)
		if err != nil && !errors.Is(err, git.ErrNonFastForward) {
			return retry.Permanent(err)
		}
		return err
	})

	err = u.fail("push", err) // where the context ended while waiting
	var failure *Error
	if errors.As(err, &failure) && errors.Is(err, git.ErrNonFastForward) {
		failure.Detail = fmt.Sprintf("%d times in a row", u.result.Attempts)
	}
	return u.result, err
}

// pauses are the waits between attempts: exponential and jittered, and beginning with what the first attempt took. Two
// publishers meet when their attempts overlap, so a pause that is short beside an attempt would only make them meet again.
type pauses struct {
	attempt time.Duration // what the attempt before the pause took
	grow    *backoff.ExponentialBackOff
}

// Reset begins anew with the next pause.
func (p *pauses) Reset() { p.grow = nil }

// NextBackOff is the next pause.
func (p *pauses) NextBackOff() time.Duration {
	if p.grow == nil {
		p.grow = &backoff.ExponentialBackOff{
			InitialInterval:     min(max(p.attempt, 100*time.Millisecond), 2*time.Second),
			RandomizationFactor: 1, // from none to twice the interval
			Multiplier:          1.5,
			MaxInterval:         3 * time.Second,
		}
		p.grow.Reset()
	}
	return p.grow.NextBackOff()
}

// attempt makes the edit on the newest manifest and pushes it once.
func (u *updater) attempt(ctx context.Context) error {
	edit, err := u.onBase(ctx)
	if err != nil {
		return err
	}
	u.result.Branch = u.repository.Branch
	if u.request.Propose && u.target == u.repository.Branch {
		return fmt.Errorf("%w: a pull request into %s cannot be opened from %[2]s itself; give another --push-branch", ErrRequest, u.target)
	}
	if u.request.Propose && edit.change.Changed {
		u.result.Change, u.result.Changed, u.result.Commit = edit.change, true, ""
		return u.propose(ctx, edit)
	}

	if u.target != u.repository.Branch && edit.change.Changed {
		u.result.Branch = u.target
		branched, err := u.onTarget(ctx)
		if err != nil {
			return err
		}
		if branched != nil {
			edit = *branched
		}
	}

	u.result.Change = edit.change
	u.result.Changed = edit.change.Changed
	u.result.Commit = ""
	switch {
	case !edit.change.Changed:
		u.result.Commit = edit.tip
		return nil
	case u.request.DryRun:
		return nil
	}

	commit, err := timed(&u.result.Timings.Commit, func() (string, error) {
		return u.commit(ctx, u.request, edit.tip, edit.old, edit.content, message(u.request, edit.change))
	})
	if err != nil {
		return u.fail("commit", err)
	}
	_, err = timed(&u.result.Timings.Push, func() (struct{}, error) {
		return struct{}{}, u.push(ctx, commit, u.target)
	})
	if err != nil {
		u.branch = u.target
		return u.fail("push", err)
	}
	u.result.Commit = commit
	return nil
}

// onBase makes the edit on the repository's branch. The first time it fetches the tip alone, later what the branch gained
// since, which must hold no conflict.
func (u *updater) onBase(ctx context.Context) (edited, error) {
	u.branch = u.repository.Branch
	fetch := u.fetchTip
	if u.first != "" {
		fetch = u.fetchSince
	}
	tip, err := timed(&u.result.Timings.Clone, func() (string, error) { return fetch(ctx, u.repository.Branch) })
	if err != nil {
		return edited{}, u.fail("clone", err)
	}
	edit, err := u.edit(ctx, tip)
	switch {
	case u.first == "":
		u.first, u.before = tip, edit.change.Old
	case err != nil:
		err = u.lost(err)
	case edit.change.Changed && edit.change.Old != u.before:
		err = u.decided(ctx, edit)
	}
	if now := edit.change.Old.String(); err == nil && edit.change.Changed && u.request.Replaces != "" && now != u.request.Replaces {
		err = u.conflict(fmt.Sprintf("%s says %s and no longer %s: somebody else has decided meanwhile", u.path, now, u.request.Replaces), nil)
	}
	return edit, err
}

// edited is the edit on top of one tip.
type edited struct {
	tip     string
	old     file
	content []byte
	change  manifest.Change
}

// edit reads the manifest at a commit and makes the edit, in memory.
func (u *updater) edit(ctx context.Context, tip string) (edited, error) {
	old, err := timed(&u.result.Timings.Clone, func() (file, error) { return u.read(ctx, tip) })
	if err != nil {
		return edited{}, u.fail("read", err)
	}
	digest := ""
	if u.request.PinDigest {
		digest = u.request.Digest
	}
	start := time.Now()
	content, change, err := manifest.Bump(old.content, u.request.Selector, u.request.Tag, digest)
	u.result.Timings.Commit += time.Since(start)
	if err != nil {
		failure := u.newError("read", nil)
		failure.Detail = fmt.Sprintf("%s: %v", u.path, err)
		failure.Err = err
		return edited{}, failure
	}
	return edited{tip: tip, old: old, content: content, change: change}, nil
}

// onTarget makes the edit on top of the branch that is pushed to, nil where it does not exist yet.
func (u *updater) onTarget(ctx context.Context) (*edited, error) {
	u.branch = u.target
	tip, err := timed(&u.result.Timings.Clone, func() (string, error) {
		exists, err := u.hasBranch(ctx, u.target)
		if err != nil || !exists {
			return "", err
		}
		return u.fetchTip(ctx, u.target)
	})
	if err != nil || tip == "" {
		return nil, u.fail("clone", err)
	}
	edit, err := u.edit(ctx, tip)
	return &edit, err
}

// conflict is the error about a branch that changed since the update began.
func (u *updater) conflict(detail string, err error) *Error {
	conflict := u.newError("push", ErrConflict)
	conflict.Detail = detail
	conflict.Fix = "look at it, and run this again if it shall be replaced"
	conflict.Err = err
	return conflict
}

// lost makes a conflict of an edit that could be made when the update began and cannot any more.
func (u *updater) lost(err error) error {
	var transport *git.Error
	if errors.As(err, &transport) {
		return err
	}
	conflict := u.conflict(fmt.Sprintf("%s was changed meanwhile and no longer holds %s exactly once", u.path, u.request.Selector), err)
	conflict.Fix = "run this again with what addresses it now"
	var missing *Error
	if errors.As(err, &missing) && errors.Is(err, ErrPathNotFound) {
		conflict.Detail = fmt.Sprintf("%s was removed meanwhile", u.path)
		conflict.Fix = missing.Fix
	}
	return conflict
}

// decided is a conflict where the reference that the edit would replace was set, since the update began, by anything but a
// publish; nil where it was a publish.
func (u *updater) decided(ctx context.Context, edit edited) error {
	descends, err := u.isAncestor(ctx, u.first, edit.tip)
	if err != nil {
		return u.fail("clone", err)
	}
	if !descends {
		return u.conflict(fmt.Sprintf("the branch was rewritten meanwhile, and %s went from %s to %s",
			u.path, u.before, edit.change.Old), nil)
	}
	entries, err := u.entries(ctx, u.first+".."+edit.tip, u.request.Selector, 1, nil)
	if err != nil {
		return u.fail("clone", err)
	}
	if len(entries) > 0 && entries[0].Action == Publish {
		return nil
	}
	by := "a commit that is not in the log"
	if len(entries) > 0 {
		by = fmt.Sprintf("%s (%.12s, %q)", entries[0].Author, entries[0].Commit, entries[0].Subject)
	}
	return u.conflict(fmt.Sprintf("%s was set meanwhile from %s to %s by %s", u.path, u.before, edit.change.Old, by), nil)
}

// timed adds the duration of a step to a sum.
func timed[T any](sum *time.Duration, step func() (T, error)) (T, error) {
	start := time.Now()
	defer func() { *sum += time.Since(start) }()
	return step()
}
