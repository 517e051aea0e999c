package rollback

import (
	"context"
	"errors"
	"fmt"

	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/manifest"
	"tazlab.net/castle/ci/publish/report"
)

// Undo puts the image back that the manifest named before a publish whose rollout failed. It changes nothing where the manifest
// no longer says what that publish wrote, since somebody else has decided then. The result knows of the failed rollout; its
// error tells of both.
func Undo(ctx context.Context, o Options, failed report.Result) (report.Result, error) {
	both := func(err error) error {
		return fmt.Errorf("%s\nthe image before it was not put back: %w", failed.Rollout.Failure(), err)
	}
	if failed.Rollout == nil || !failed.Rollout.Failed {
		return report.Result{}, errors.New("there is no failed rollout to go back from")
	}
	if !failed.GitOps.Changed {
		return report.Result{}, both(errors.New("this call changed nothing, so it is not known which one that would be; see dagger call history"))
	}
	before := manifest.ParseReference(failed.GitOps.Was)
	if before.Tag == "" {
		return report.Result{}, both(fmt.Errorf("the manifest named %s, which has no tag to go back to: revert GitOps commit %.12s by hand", failed.GitOps.Was, failed.GitOps.Commit))
	}
	o.To, o.exactly = before.Tag, true
	o.Update.Replaces = failed.GitOps.Image
	o.Update.PinDigest = o.Update.PinDigest || before.Digest != ""
	o.Update.Because = "The rollout of " + failed.Image.Repository + ":" + failed.Image.Tag + " failed."
	// The branch of the publish that failed is merged, and its name another one's.
	o.Update.PushBranch = ""
	result, err := Run(ctx, o)
	rollout := *failed.Rollout
	rollout.Image = failed.GitOps.Image
	result.Failed = &rollout
	if err != nil {
		return result, both(err)
	}
	return result, nil
}

// tagged is the newest entry that put a tag into the manifest.
func tagged(entries gitops.Entries, tag string) (gitops.Entry, error) {
	for _, entry := range entries {
		if entry.New.Tag == tag {
			return entry, nil
		}
	}
	return gitops.Entry{}, fmt.Errorf("%w: the history does not have the tag %s", gitops.ErrNotPublished, tag)
}
