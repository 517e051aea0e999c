// Package imagesign keeps cosign's signatures and attestations of images beside them in the registry, and verifies them. Whoever
// has cosign reads what it writes, and it reads what cosign wrote.
package imagesign

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/base/cosign"
	"tazlab.net/castle/ci/publish/imagepush"
)

// Image is one in a registry, by its digest.
type Image struct {
	Registry   imagepush.Access
	Repository string
	Digest     string // "sha256:…"
}

func (i Image) reference() string { return i.Repository + "@" + i.Digest }

// UnverifiedError: nothing that stands beside the image is what was asked for.
type UnverifiedError struct {
	What     string   // "signature", or "attestation " and its kind
	Problems []string // of what is there instead, a phrase each
}

func (e *UnverifiedError) Error() string {
	if len(e.Problems) == 0 {
		return "there is no " + e.What
	}
	return fmt.Sprintf("no %s of %d holds: %s", e.What, len(e.Problems), strings.Join(e.Problems, "; "))
}

// Signed reports whether the key has signed the image, which everyone who may push to the registry can only claim of it.
func Signed(ctx context.Context, image Image, key *cosign.Verifier) (bool, error) {
	err := Verify(ctx, image, key)
	if errors.As(err, new(*UnverifiedError)) {
		return false, nil
	}
	return err == nil, err
}

// Verify returns no error where a signature of the image's digest is there that was made with the key; an *UnverifiedError where
// there is none.
func Verify(ctx context.Context, image Image, key *cosign.Verifier) error {
	found, err := imagepush.Attachments(ctx, image.Registry, image.reference(), cosign.SignatureSuffix)
	if err != nil {
		return err
	}
	failed := &UnverifiedError{What: "signature"}
	for _, one := range found {
		if one.MediaType != cosign.SignatureType {
			failed.Problems = append(failed.Problems, "it is of the kind "+one.MediaType)
			continue
		}
		err := key.VerifyImage(one.Content, one.Annotations[cosign.SignatureAnnotation], image.Digest)
		if err == nil {
			return nil
		}
		failed.Problems = append(failed.Problems, err.Error())
	}
	return failed
}

// Sign makes sure that the image has a signature of the key; already says that it had one.
func Sign(ctx context.Context, image Image, key *cosign.Signer) (already bool, err error) {
	if already, err = holds(Verify(ctx, image, key.Verifier())); already || err != nil {
		return already, err
	}
	digest, err := image.Registry.ParseDigest(image.reference())
	if err != nil {
		return false, err
	}
	text, made, err := key.SignImage(digest)
	if err != nil {
		return false, err
	}
	if err := imagepush.Attach(ctx, image.Registry, image.reference(), cosign.SignatureSuffix, imagepush.Attachment{
		MediaType: cosign.SignatureType, Content: text, Annotations: map[string]string{cosign.SignatureAnnotation: made},
	}); err != nil {
		return false, err
	}
	return false, Verify(ctx, image, key.Verifier())
}

// Attestation returns the statement of that kind about the image which was signed with the key; an *UnverifiedError where there is
// none. Where there are several, the one that was added last counts.
func Attestation(ctx context.Context, image Image, key *cosign.Verifier, kind string) (cosign.Statement, error) {
	found, err := imagepush.Attachments(ctx, image.Registry, image.reference(), cosign.AttestationSuffix)
	if err != nil {
		return cosign.Statement{}, err
	}
	failed := &UnverifiedError{What: "attestation " + kind}
	for i := len(found) - 1; i >= 0; i-- {
		one := found[i]
		if of := one.Annotations[cosign.PredicateAnnotation]; of != "" && of != kind {
			continue
		}
		statement, err := key.Open(one.Content)
		switch {
		case err != nil:
			failed.Problems = append(failed.Problems, err.Error())
		case statement.PredicateType != kind:
			failed.Problems = append(failed.Problems, "it is of the kind "+statement.PredicateType)
		case !statement.About(image.Digest):
			failed.Problems = append(failed.Problems, "it is about another image")
		default:
			return statement, nil
		}
	}
	return cosign.Statement{}, failed
}

// Attest makes sure that the image has an attestation of that kind, signed with the key; already says that it had one, and then
// nothing is made.
func Attest(ctx context.Context, image Image, key *cosign.Signer, kind string, predicate func() ([]byte, error)) (already bool, err error) {
	_, err = Attestation(ctx, image, key.Verifier(), kind)
	if already, err = holds(err); already || err != nil {
		return already, err
	}
	text, err := predicate()
	if err != nil {
		return false, err
	}
	envelope, err := key.Attest(cosign.Statement{
		Subject: []cosign.Subject{cosign.SubjectOf(image.Repository, image.Digest)}, PredicateType: kind, Predicate: text,
	})
	if err != nil {
		return false, err
	}
	// cosign has the signature of an attestation in its envelope, and this annotation empty.
	if err := imagepush.Attach(ctx, image.Registry, image.reference(), cosign.AttestationSuffix, imagepush.Attachment{
		MediaType: cosign.AttestationType, Content: envelope,
		Annotations: map[string]string{cosign.SignatureAnnotation: "", cosign.PredicateAnnotation: kind},
	}); err != nil {
		return false, err
	}
	_, err = Attestation(ctx, image, key.Verifier(), kind)
	return false, err
}

// holds tells a missing signature from a registry that does not answer.
func holds(err error) (bool, error) {
	if errors.As(err, new(*UnverifiedError)) {
		return false, nil
	}
	return err == nil, err
}
