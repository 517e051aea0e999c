// Package publish is the last mile of a blog: the image goes into the registry and then, strictly after the registry
// has confirmed its digest and has its signature, where one is asked for, its tag into the GitOps manifest. It never builds
// anything. The packages rollback, history and verify are the verbs beside it; report is what a run tells of what it did.
package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tazlab.net/castle/ci/base/cosign"
	"tazlab.net/castle/ci/base/tracing"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/imagesbom"
	"tazlab.net/castle/ci/publish/imagesign"
	"tazlab.net/castle/ci/publish/manifest"
	"tazlab.net/castle/ci/publish/pullrequest"
	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/publish/site/hugoversion"
	"tazlab.net/castle/ci/publish/warning"
	"tazlab.net/castle/ci/publish/worktree"
)

// Options say what is published and where.
type Options struct {
	// Commit is what the image was built from.
	Commit worktree.Commit
	// Hugo is the version that built the site, for the report.
	Hugo hugoversion.Choice
	// Layout is the OCI layout that holds the image or index.
	Layout string
	// Image is the image's repository; its tag is TagPrefix and the commit's abbreviated SHA.
	Image, TagPrefix string
	// Rebuild publishes the commit again where it was made from other inputs before: its tag has -r2 behind it then, or the
	// next number that the registry does not have.
	Rebuild bool
	// Registry says how to reach the image's registry.
	Registry imagepush.Access
	// Repository and Update address the manifest; the update's image and source are set from the above.
	Repository gitops.Repository
	Update     gitops.UpdateRequest
	// PullRequest says whether the change is proposed instead of pushed.
	PullRequest pullrequest.Options
	// Checked says that Check has found nothing; else it is called before the image is pushed or signed.
	Checked bool
	// Headers are those that the image sends, for the report; nil: not told.
	Headers *report.Headers
	// Signer signs the image, unless it has this key's signature already; nil: it is not signed.
	Signer *cosign.Signer
	// SBOM also attaches a signed list of what the image consists of, unless it has one. It needs a Signer.
	SBOM bool
	// Export is the folder that the commit was exported to, and Site the site's path in it, for the SBOM; empty: what
	// the site pins is left out of it.
	Export, Site string
	// DryRun compares and pushes nothing.
	DryRun bool
	// Began is when the whole run began, and Steps are those done already.
	Began time.Time
	Steps []report.Step
	// Warnings say what in the site its author should change; they are only reported.
	Warnings []warning.Warning
}

// Run publishes. The result is complete only without an error; with one it holds what was done until then.
func Run(ctx context.Context, o Options) (result report.Result, err error) {
	if o.SBOM && o.Signer == nil {
		return result, errors.New("an SBOM that nobody signed proves nothing: give the key to sign it with, too")
	}
	reference := o.Image + ":" + o.TagPrefix + o.Commit.Short
	result = report.Result{
		DryRun:  o.DryRun,
		Source:  report.Source{Commit: o.Commit.SHA, Subject: o.Commit.Subject, Time: o.Commit.Time, Repository: o.Commit.Source},
		Image:   report.Image{Repository: o.Image, Tag: o.TagPrefix + o.Commit.Short},
		Hugo:    o.Hugo,
		Headers: o.Headers,
		Steps:   o.Steps,
	}
	result.Warn(o.Warnings)
	began := o.Began
	if began.IsZero() {
		began = time.Now()
	}
	defer func() { result.Seconds = time.Since(began).Seconds() }()

	if !o.Checked {
		if err := o.PullRequest.Check(ctx, o.Repository); err != nil {
			return result, &refusedError{err}
		}
	}
	// Once, and only where something is about to be pushed.
	check := func(ctx context.Context) error {
		if o.Checked {
			return nil
		}
		ctx, span := tracing.Begin(ctx, "check the GitOps repository")
		err := o.checkUpdate(ctx)
		tracing.End(span, err)
		o.Checked = err == nil
		return err
	}
	err = result.Step(ctx, "push the image", func(ctx context.Context) error {
		pushed, err := o.push(ctx, reference, check)
		result.Image.Digest, result.Image.AlreadyThere = pushed.Digest, pushed.AlreadyThere
		result.Image.UploadedBytes = pushed.Bytes
		if err == nil {
			result.Image.Tag, reference = pushed.Tag, pushed.Reference
			result.Image.Rebuild = report.RebuildOf(pushed.Rebuild)
		}
		if pushed.BuildDigest != pushed.Digest {
			result.Image.BuildDigest = pushed.BuildDigest
		}
		return err
	})
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return result, refused
	}
	if err != nil {
		return result, fmt.Errorf("the manifest is untouched: %w", err)
	}

	if o.Signer != nil && !o.DryRun {
		err = result.Step(ctx, "sign the image", func(ctx context.Context) error {
			err := check(ctx)
			if err == nil {
				err = o.maySign(ctx, result.Image)
			}
			if err == nil {
				result.Image.Signature, err = o.sign(ctx, result.Image)
			}
			return err
		})
		if err != nil {
			return result, fmt.Errorf("the manifest is untouched (the image %s is in the registry): sign it: %w", reference, err)
		}
	}

	update := o.update(result.Image.Tag)
	update.Digest, update.Because = result.Image.Digest, result.Image.Rebuild.Sentence()
	err = o.PullRequest.Update(ctx, o.Repository, update, &result)
	if err != nil && o.DryRun {
		return result, fmt.Errorf("update the manifest: %w", err)
	}
	if err != nil {
		return result, fmt.Errorf("update the manifest (the image %s is in the registry): %w", reference, err)
	}
	result.Changed = result.GitOps.Changed || !result.Image.AlreadyThere || result.Image.Signature.Made()
	return result, nil
}

// Check looks at the GitOps repository: it refuses whatever the update of the manifest would, so that no image is pushed first.
// It needs neither the image nor its digest.
func Check(ctx context.Context, o Options) error {
	if err := o.PullRequest.Check(ctx, o.Repository); err != nil {
		return &refusedError{err}
	}
	return o.checkUpdate(ctx)
}

func (o Options) checkUpdate(ctx context.Context) error {
	if err := o.PullRequest.CheckUpdate(ctx, o.Repository, o.update(o.TagPrefix+o.Commit.Short)); err != nil {
		return &refusedError{err}
	}
	return nil
}

// refusedError is why the manifest could not be updated after a push.
type refusedError struct{ error }

func (e *refusedError) Error() string { return "nothing is changed yet: " + e.error.Error() }
func (e *refusedError) Unwrap() error { return e.error }

// update is that of the manifest to a tag.
func (o Options) update(tag string) gitops.UpdateRequest {
	update := o.Update
	update.Selector.Image, update.Tag, update.DryRun = o.Image, tag, o.DryRun
	update.SourceCommit, update.SourceRepository = o.Commit.SHA, o.Commit.Source
	return update
}

// push pushes the image, or in a dry run says what a push would find.
func (o Options) push(ctx context.Context, reference string, before func(context.Context) error) (imagepush.Result, error) {
	options := imagepush.Options{
		Access: o.Registry, Reference: reference, Layout: o.Layout, Rebuild: o.Rebuild, Known: o.known, Before: before,
	}
	if o.DryRun {
		options.Access = options.Briefly()
		return imagepush.Compare(ctx, options)
	}
	return imagepush.Push(ctx, options)
}

// known tells whether an image is this commit's by more than the registry's word: by a signature of the key, or by a
// commit of the GitOps repository, which decides what runs anyway.
func (o Options) known(ctx context.Context, tag, digest string) (bool, error) {
	if o.Signer != nil {
		image := imagesign.Image{Registry: o.Registry, Repository: o.Image, Digest: digest}
		if signed, err := imagesign.Signed(ctx, image, o.Signer.Verifier()); signed || err != nil {
			return signed, err
		}
	}
	update := o.Update
	update.Selector.Image, update.Tag = o.Image, tag
	return gitops.Recorded(ctx, o.Repository, update.Path, update.Selector, o.PullRequest.Branch(update),
		manifest.Reference{Tag: tag, Digest: digest})
}

// maySign fails where the registry has another image under the tag than this call has built, and the key has not signed it: that it was made from the
// same inputs is its own word, which whoever may push there can write.
func (o Options) maySign(ctx context.Context, pushed report.Image) error {
	if pushed.BuildDigest == "" {
		return nil
	}
	image := imagesign.Image{Registry: o.Registry, Repository: o.Image, Digest: pushed.Digest}
	if signed, err := imagesign.Signed(ctx, image, o.Signer.Verifier()); signed || err != nil {
		return err
	}
	return fmt.Errorf("%s:%s is %s in the registry, and this build is %s: that the other was made from the same inputs is its own word, and it has no signature of this key, "+
		"so that it gets none; publish another commit, such as an empty one, or remove that tag from the registry", o.Image, pushed.Tag, pushed.Digest, pushed.BuildDigest)
}

// sign makes sure that what the registry has is signed, and has its SBOM.
func (o Options) sign(ctx context.Context, pushed report.Image) (*report.Signature, error) {
	image := imagesign.Image{Registry: o.Registry, Repository: o.Image, Digest: pushed.Digest}
	signature := &report.Signature{Key: o.Signer.Verifier().Fingerprint()}
	var err error
	if signature.AlreadyThere, err = imagesign.Sign(ctx, image, o.Signer); err != nil || !o.SBOM {
		return signature, err
	}
	signature.SBOM = &report.SBOM{}
	signature.SBOM.AlreadyThere, err = imagesign.Attest(ctx, image, o.Signer, cosign.PredicateSPDX, func() (text []byte, err error) {
		text, signature.SBOM.Parts, err = imagesbom.Make(ctx, imagesbom.Options{
			Layout: o.Layout, Export: o.Export, Site: o.Site, Commit: o.Commit, Hugo: o.Hugo, Repository: o.Image, Tag: pushed.Tag, Digest: pushed.Digest,
		})
		return text, err
	})
	return signature, err
}
