// Package rollback points the manifest at an image that was published before, after making sure that the registry still
// has it, and has it unchanged. Nothing is built.
package rollback

import (
	"context"
	"fmt"
	"time"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/pullrequest"
	"tazlab.net/castle/ci/publish/report"
)

// Options say to which earlier image the manifest goes back.
type Options struct {
	// To is the source commit of the earlier image, 4 digits or more, one of its rebuilds (1a2b3c4-r2), or its tag.
	To string
	// Image is the image's repository.
	Image string
	// Registry says how to reach the image's registry.
	Registry imagepush.Access
	// Repository and Update address the manifest.
	Repository gitops.Repository
	Update     gitops.UpdateRequest
	// PullRequest says whether the change is proposed instead of pushed.
	PullRequest pullrequest.Options

	exactly bool // To is a tag, whatever it looks like
}

// Run rolls back. The result is complete only without an error.
func Run(ctx context.Context, o Options) (result report.Result, err error) {
	began := time.Now()
	o.Update.Selector.Image = o.Image
	result = report.Result{Rollback: true, DryRun: o.Update.DryRun}
	defer func() { result.Seconds = time.Since(began).Seconds() }()

	if err := o.PullRequest.Check(ctx, o.Repository); err != nil {
		return result, fmt.Errorf("nothing is changed yet: %w", err)
	}
	if o.Update.DryRun {
		o.Registry = o.Registry.Briefly()
	}
	var earlier gitops.Entry
	err = result.Step(ctx, "read the history", func(ctx context.Context) error {
		entries, err := gitops.History(ctx, o.Repository, o.Update.Path, o.Update.Selector, 0)
		if err != nil {
			return err
		}
		find := entries.Find
		if o.exactly {
			find = func(tag string) (gitops.Entry, error) { return tagged(entries, tag) }
		}
		if earlier, err = find(o.To); err != nil {
			return err
		}
		if earlier.New.Tag == "" {
			return fmt.Errorf("the GitOps commit %s wrote only a digest, %s, and no tag to go back to: revert that manifest by hand",
				rendering.ShortSHA(earlier.Commit), earlier.New.Digest)
		}
		return nil
	})
	if err != nil {
		return result, err
	}

	reference := o.Image + ":" + earlier.New.Tag
	result.Image = report.Image{Repository: o.Image, Tag: earlier.New.Tag, AlreadyThere: true}
	err = result.Step(ctx, "find the image", func(ctx context.Context) error {
		found, err := imagepush.Lookup(ctx, o.Registry, reference)
		if err != nil {
			return fmt.Errorf("the image to roll back to: %w", err)
		}
		recorded := earlier.Recorded()
		switch {
		case recorded == "" && o.Update.PinDigest && !o.exactly:
			return fmt.Errorf("the GitOps commit %s that named %s recorded no digest, so there is none to pin: anyone who "+
				"can push to the registry can have replaced the image since; publish that commit again with --rebuild, "+
				"or roll back without the digest", rendering.ShortSHA(earlier.Commit), reference)
		case recorded == "":
			// Neither pinned nor recorded: what the registry has today would be what was published from then on.
			o.Update.PinDigest, o.Update.Unrecorded = false, true
			result.Warnings = append(result.Warnings, fmt.Sprintf("the GitOps commit %s that named %s recorded no digest: "+
				"anyone who can push to the registry can have replaced the image since",
				rendering.ShortSHA(earlier.Commit), reference))
		case recorded != found:
			return fmt.Errorf("%s is no longer what was published: the GitOps commit %s recorded %s, the registry has %s; "+
				"publish that commit again with --rebuild, or roll back to another one",
				reference, rendering.ShortSHA(earlier.Commit), recorded, found)
		}
		result.Image.Digest = found
		return nil
	})
	if err != nil {
		return result, err
	}

	update := o.Update
	update.Action = gitops.Rollback
	update.Tag, update.Digest = earlier.New.Tag, result.Image.Digest
	update.SourceCommit, update.SourceRepository = earlier.SourceCommit, earlier.SourceRepository
	result.Source = report.Source{Commit: earlier.SourceCommit, Repository: earlier.SourceRepository}
	if earlier.SourceCommit == "" {
		result.Source.Commit = earlier.Source()
	}
	err = o.PullRequest.Update(ctx, o.Repository, update, &result)
	result.Changed = result.GitOps.Changed
	return result, err
}
