// Package verify looks at what the manifest names, and says whether it is an image that was signed, with a signed SBOM, and the very
// one that was published. It changes nothing.
package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/base/cosign"
	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/base/sbom"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/imagesign"
)

// Options say what is verified.
type Options struct {
	// Image is the image's repository.
	Image string
	// Registry says how to reach it.
	Registry imagepush.Access
	// Repository and Update address the manifest. Nothing is updated.
	Repository gitops.Repository
	Update     gitops.UpdateRequest
	// Key is whose signatures count.
	Key *cosign.Verifier
	// SBOM also asks for a signed one.
	SBOM bool
}

// Run looks at all of it; the result says what is missing or wrong. An error is what kept it from looking.
func Run(ctx context.Context, o Options) (Result, error) {
	o.Update.Selector.Image = o.Image
	result := Result{Image: o.Image, Key: o.Key.Fingerprint()}
	named, err := gitops.Named(ctx, o.Repository, o.Update.Path, o.Update.Selector)
	if err != nil {
		return result, fmt.Errorf("what the manifest names: %w", err)
	}
	result.Tag, result.Commit = named.New.Tag, named.Commit
	reference := o.Image + ":" + named.New.Tag
	if named.New.Digest != "" {
		reference = o.Image + "@" + named.New.Digest // what the cluster pulls, whatever the tag is by now
	}
	result.Digest, err = imagepush.Lookup(ctx, o.Registry, reference)
	if missing := (*imagepush.NotFoundError)(nil); errors.As(err, &missing) {
		result.add("image", "the registry does not have "+reference, "publish that commit again, or roll back to an image that is there")
		return result, nil
	}
	if err != nil {
		return result, err
	}
	result.add("image", "", "")
	tagged := result.Digest
	if named.New.Digest != "" && named.New.Tag != "" {
		tagged, err = imagepush.Lookup(ctx, o.Registry, o.Image+":"+named.New.Tag)
		if err != nil && !errors.As(err, new(*imagepush.NotFoundError)) {
			return result, err
		}
	}
	result.digest(named, tagged)

	image := imagesign.Image{Registry: o.Registry, Repository: o.Image, Digest: result.Digest}
	if err := result.judge("signature", imagesign.Verify(ctx, image, o.Key), "publish-blog --sign signs it, where it is one of yours"); err != nil {
		return result, err
	}
	if !o.SBOM {
		return result, nil
	}
	statement, err := imagesign.Attestation(ctx, image, o.Key, cosign.PredicateSPDX)
	if err == nil {
		err = result.list(statement)
	}
	return result, result.judge("SBOM", err, "publish-blog --sign --sbom attaches one, where the image is one of yours")
}

// digest compares what the tag is, empty where it is gone, with what was published: the digest that the manifest pins, else the one
// that the commit of the publish recorded.
func (r *Result) digest(named gitops.Entry, tagged string) {
	const moved = "whoever may push to the registry moved the tag; find out who, and publish or roll back to another image"
	tag := r.Image + ":" + named.New.Tag
	switch pinned, recorded := named.New.Digest, named.Digest; {
	case pinned != "" && tagged == "":
		r.add("digest", fmt.Sprintf("the manifest pins %s, and the registry does not have %s any more", pinned, tag), "publish that commit again")
	case pinned != "" && tagged != pinned:
		r.add("digest", fmt.Sprintf("the manifest pins %s, and %s is %s", pinned, tag, tagged), moved)
	case pinned != "":
		r.Pinned = true
		r.add("digest", "", "")
	case recorded == "":
		r.add("digest", fmt.Sprintf("the GitOps commit %s says of no digest which it meant; what the tag is today may be anything", rendering.ShortSHA(named.Commit)),
			"publish with --pin-digest, or write the digest behind the tag")
	case recorded != r.Digest:
		r.add("digest", fmt.Sprintf("the GitOps commit %s published %s, and %s is %s now", rendering.ShortSHA(named.Commit), recorded, tag, r.Digest), moved)
	default:
		r.add("digest", "", "")
	}
}

// list reads an SBOM, and makes sure that it is that of the image.
func (r *Result) list(statement cosign.Statement) error {
	parts, described, err := sbom.Read(statement.Predicate)
	if err != nil {
		return &imagesign.UnverifiedError{What: "SBOM", Problems: []string{err.Error()}}
	}
	// Another tool's may describe the image without its digest; the statement around it names that.
	if of := described["SHA256"]; of != "" && "sha256:"+of != r.Digest {
		return &imagesign.UnverifiedError{What: "SBOM", Problems: []string{"it describes another image, sha256:" + of}}
	}
	r.Parts = parts
	return nil
}

// judge takes down what came of a check; what kept it from being made stays an error.
func (r *Result) judge(name string, err error, fix string) error {
	if unverified := (*imagesign.UnverifiedError)(nil); errors.As(err, &unverified) {
		r.add(name, strings.TrimSpace(unverified.Error()), fix)
		return nil
	}
	if err != nil {
		return fmt.Errorf("the %s: %w", name, err)
	}
	r.add(name, "", "")
	return nil
}
