package report

import (
	"context"
	"errors"
	"fmt"
)

// Failure says in one sentence what a rollout that failed came to.
func (r *Rollout) Failure() string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("the rollout of %s%s failed: %s", r.Deployment, r.on(), r.Problem)
}

// WaitUndone waits until the image that was put back after a failed rollout is available. It always returns an error: that of
// the rollout that failed, with what became of the way back. What only a pull request would put back is not waited for.
func (r *Result) WaitUndone(ctx context.Context, waiter Waiter) error {
	failure := errors.New(r.Failed.Failure())
	if p := r.GitOps.PullRequest; p != nil && !p.Merged {
		return fmt.Errorf("%w\nthe image before it, %s, is proposed, and runs again when that is merged: %s", failure, r.GitOps.Image, p.URL)
	}
	if err := r.WaitRollout(ctx, waiter); err != nil {
		return fmt.Errorf("%w\nthe image before it was put back, and is not available either: %w", failure, err)
	}
	return fmt.Errorf("%w\nthe image before it, %s, was put back (GitOps commit %.12s) and is available", failure, r.GitOps.Image, r.GitOps.Commit)
}
