package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/base/git"
)

// ErrForeign means that a branch that castle would make anew holds commits of others.
var ErrForeign = errors.New("the branch has commits that castle did not make")

// proposedRef is where the workspace keeps the tip of a branch that is proposed.
const proposedRef = "refs/castle/proposed"

// propose makes the branch that is pushed to one commit on top of the tip that the edit was made on. What castle put on the
// branch before is replaced, because the edit made again says the same; what anybody else put there never is.
func (u *updater) propose(ctx context.Context, edit edited) error {
	u.result.Branch = u.target
	if u.request.DryRun {
		return nil
	}
	u.branch = u.target
	text := message(u.request, edit.change)
	u.result.Message = text
	old, err := timed(&u.result.Timings.Clone, func() (proposed, error) { return u.proposed(ctx, edit, text) })
	if err != nil {
		return u.fail("clone", err)
	}
	if old.same {
		u.result.Commit = old.tip
		return nil
	}
	commit, err := timed(&u.result.Timings.Commit, func() (string, error) {
		return u.commit(ctx, u.request, edit.tip, edit.old, edit.content, text)
	})
	if err != nil {
		return u.fail("commit", err)
	}
	_, err = timed(&u.result.Timings.Push, func() (struct{}, error) {
		return struct{}{}, u.replace(ctx, commit, u.target, old.tip)
	})
	if err != nil {
		return u.fail("push", err)
	}
	u.result.Commit = commit
	return nil
}

// proposed is a branch as it is.
type proposed struct {
	tip  string // empty: there is no such branch
	same bool   // it is the edit on top of the same tip
}

func (u *updater) proposed(ctx context.Context, edit edited, text string) (proposed, error) {
	exists, err := u.hasBranch(ctx, u.target)
	if err != nil || !exists {
		return proposed{}, err
	}
	// Both with all of their commits: a tip that was fetched alone does not tell which of the branch's are its own.
	const all = "--depth=2147483647"
	if _, err := u.git.Run(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", all, "--filter=blob:none", "origin",
		"+refs/heads/"+u.repository.Branch+":"+localRef, "+refs/heads/"+u.target+":"+proposedRef); err != nil {
		return proposed{}, err
	}
	tip, err := u.git.Run(ctx, "rev-parse", "--verify", "--quiet", proposedRef+"^{commit}")
	if err != nil {
		return proposed{}, err
	}
	found := proposed{tip: strings.TrimSpace(tip)}
	out, err := u.git.Run(ctx, "log", "--topo-order", "--raw", "--no-abbrev", "--no-renames", "-c", "--format="+logFormat, edit.tip+".."+found.tip)
	if err != nil || out == "" {
		return found, err
	}
	fields := strings.Split(out, "\x00")[1:]
	if len(fields)%logFields != 0 {
		return found, fmt.Errorf("git log answered %d fields, which is no multiple of %d", len(fields), logFields)
	}
	blob, err := u.git.RunInput(ctx, bytes.NewReader(edit.content), "hash-object", "--stdin")
	if err != nil {
		return found, err
	}
	at, err := u.git.Run(ctx, "rev-parse", found.tip+":"+u.path)
	if _, missing := errors.AsType[*git.Error](err); err != nil && !missing {
		return found, err
	}
	found.same = len(fields) == logFields && fields[1] == edit.tip && at == blob && strings.TrimSpace(fields[6]) == strings.TrimSpace(text)
	for ; len(fields) > 0; fields = fields[logFields:] {
		var entry Entry
		entry.readTrailers(fields[6])
		// GitHub's button "Update branch" merges the base into it, which the edit on the new tip does as well.
		merge := strings.Contains(fields[1], " ")
		if (merge || entry.Action != "") && onlyPath(fields[7], u.path) {
			continue
		}
		foreign := u.newError("push", ErrForeign)
		foreign.Detail = fmt.Sprintf("%.12s by %s, %q", fields[0], fields[3], fields[5])
		foreign.Fix = "merge or delete that branch, or name another one with --push-branch"
		return found, foreign
	}
	return found, nil
}

// onlyPath tells whether the lines of --raw name no other file.
func onlyPath(raw, path string) bool {
	for line := range strings.Lines(raw) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if _, name, ok := strings.Cut(line, "\t"); !ok || name != path {
			return false
		}
	}
	return true
}

// replace moves a branch of the remote from one tip to another, whatever was on it: the caller has looked. Where it is no
// longer at that tip, an empty one for a branch that is not there, nothing is moved.
func (w *workspace) replace(ctx context.Context, commit, branch, old string) error {
	return w.pushWith(ctx, commit, branch, "--force-with-lease=refs/heads/"+branch+":"+old)
}
