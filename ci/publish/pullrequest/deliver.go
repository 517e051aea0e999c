package pullrequest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/report"
)

// Options say whether and how a change is delivered as a pull request.
type Options struct {
	// Use says that it is. Everything else is left out of account where it is not.
	Use bool
	// API is the address of GitHub's API; empty: that of github.com.
	API string
	// Wait is how long to wait for the merge; zero: not at all.
	Wait time.Duration
	// Every is the pause between two looks; zero means the default.
	Every time.Duration
}

// CheckUpdate refuses a change of the manifest that Update could not push. The update's digest may be unknown.
func (o Options) CheckUpdate(ctx context.Context, repository gitops.Repository, update gitops.UpdateRequest) error {
	update.Propose, update.PushBranch = o.Use, o.Branch(update)
	return gitops.Check(ctx, repository, update)
}

// Check refuses a pull request that could not be opened.
func (o Options) Check(ctx context.Context, repository gitops.Repository) error {
	if !o.Use {
		return nil
	}
	github, err := Open(repository.URL, o.API, repository.Credentials.Token)
	if err != nil {
		return err
	}
	return github.Check(ctx)
}

// Update makes the change of the manifest, as a pull request or else as a push, and writes into the result what came of it.
// Where nobody names a branch, the pull request has one by what it changes, so that the same call finds the same one again.
func (o Options) Update(ctx context.Context, repository gitops.Repository, update gitops.UpdateRequest, result *report.Result) error {
	update.Propose, update.PushBranch = o.Use, o.Branch(update)
	message := ""
	change := func(ctx context.Context) error {
		updated, err := gitops.Update(ctx, repository, update)
		result.GitOps = report.GitOpsOf(repository, update.Path, updated)
		message = updated.Message
		return err
	}
	if err := result.Step(ctx, "update the manifest", change); err != nil || !o.Use || update.DryRun || !result.GitOps.Changed {
		return err
	}
	github, err := Open(repository.URL, o.API, repository.Credentials.Token)
	if err != nil {
		return err
	}
	head, base := result.GitOps.Branch, cmp.Or(repository.Branch, gitops.DefaultBranch)
	var opened Opened
	propose := func(ctx context.Context) (err error) {
		title, body := result.Proposal(message)
		opened, err = github.Propose(ctx, Proposal{Head: head, Base: base, Title: title, Body: body})
		return err
	}
	if err := result.Step(ctx, "open the pull request", propose); err != nil {
		return fmt.Errorf("the change is on branch %s (commit %.12s), but there is no pull request for it: %w", head, result.GitOps.Commit, err)
	}
	result.GitOps.PullRequest = &report.PullRequest{Number: opened.Number, URL: opened.URL, Reused: opened.Reused}
	if o.Wait == 0 {
		return nil
	}
	return result.Step(ctx, "wait for the merge", func(ctx context.Context) error {
		merged, err := github.Wait(ctx, opened, Wait{For: o.Wait, Every: o.Every, Renew: func(ctx context.Context) (bool, error) {
			request := result.GitOps.PullRequest
			if err := change(ctx); err != nil {
				return false, err
			}
			result.GitOps.PullRequest = request
			if !result.GitOps.Changed {
				return true, nil
			}
			return false, propose(ctx)
		}})
		if err != nil {
			return err
		}
		if merged.Commit == "" && result.GitOps.Changed {
			return errors.New("GitHub named no commit of the merge: wait for it with `dagger call wait-blog`")
		}
		if merged.Commit != "" {
			result.GitOps.PullRequest.Merged = true
			result.GitOps.Commit, result.GitOps.At = merged.Commit, merged.At
		}
		result.GitOps.Branch = base
		return nil
	})
}

// Branch is the one that gets an update, where it is not the repository's.
func (o Options) Branch(update gitops.UpdateRequest) string {
	if update.PushBranch == "" && o.Use {
		return Branch(update)
	}
	return update.PushBranch
}

var noRef = regexp.MustCompile(`[^A-Za-z0-9_/-]+`)

// Branch is the branch of a pull request: what is done to which reference, and the tag. Two manifests that name the same
// image have two, and so have two images of the same manifest.
func Branch(update gitops.UpdateRequest) string {
	parts := []string{"castle", string(cmp.Or(update.Action, gitops.Publish)), strings.TrimSuffix(update.Path, path.Ext(update.Path))}
	for _, part := range []string{update.Selector.Resource, update.Selector.Container, update.Tag} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	for i, part := range parts {
		parts[i] = strings.Trim(noRef.ReplaceAllString(part, "-"), "-/")
	}
	return strings.Join(parts, "/")
}
