package imagepush

import (
	"fmt"
	"strings"
	"time"
)

// TagConflictError: the tag exists with another digest, and is not this image. It was not moved.
type TagConflictError struct {
	Reference   string
	Want, Have  string   // digests: the layout's and the registry's
	Differences []string // of the inputs, a phrase each; of the content where Unknown
	Unknown     bool     // the image says that it was made from the same inputs, and nothing else does
	Raced       bool     // somebody else put the tag while this push was putting it
}

func (e *TagConflictError) Error() string {
	differences := strings.Join(e.Differences, "; ")
	switch {
	case e.Raced:
		return fmt.Sprintf("somebody else pushed %s at the same time: it is %s now, not %s (%s); find out who: "+
			"if it was another publish of this commit, run this again when that one has committed the manifest, "+
			"else publish from a new commit", e.Reference, e.Have, e.Want, differences)
	case e.Unknown:
		return fmt.Sprintf("%s exists with the digest %s, and this build is %s: that image says that it was made from "+
			"the same inputs, but %s. Anyone who can push to the registry can write that, and neither the GitOps repository "+
			"nor a signature of your key knows the image; publish with --rebuild as another tag, or from a new commit, "+
			"and find out who pushed it", e.Reference, e.Have, e.Want, differences)
	}
	return fmt.Sprintf("%s exists with the digest %s, and this build is %s, made from other inputs (%s); a tag is never "+
		"moved: publish from a new commit, with --rebuild as another tag of this one, or under another tag prefix, "+
		"or delete the tag in the registry if it is wrong", e.Reference, e.Have, e.Want, differences)
}

// NotFoundError: the registry has no such image.
type NotFoundError struct{ Reference string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s does not exist in the registry", e.Reference)
}

// AuthError: the registry wants other credentials.
type AuthError struct {
	Registry, Repository string
	Status               int  // 401 or 403
	Anonymous            bool // none were given
	Detail               string
}

func (e *AuthError) Error() string {
	fix := "check the user name and the token, that the token has not expired, and that it may write to " + e.Repository
	if e.Anonymous {
		fix = "no credentials were given: give a user name and a password or token for " + e.Registry
	}
	return fmt.Sprintf("the registry %s refused access (%d): %s; %s", e.Registry, e.Status, e.Detail, fix)
}

// RefusedError: the registry, or the way to it, refuses what a repetition would not change.
type RefusedError struct {
	Registry string
	Doing    string // "blob sha256:…"
	Status   int    // 0: there was no answer
	Detail   string
}

func (e *RefusedError) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("the registry %s cannot be used (%s): %s", e.Registry, e.Doing, e.Detail)
	}
	return fmt.Sprintf("the registry %s refused %s (%d): %s", e.Registry, e.Doing, e.Status, e.Detail)
}

// UnavailableError: the registry did not serve, however often it was asked. Later it may.
type UnavailableError struct {
	Registry string
	Doing    string
	Attempts int
	Detail   string        // of the last attempt
	For      time.Duration // how long it was tried, from the first failure on
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the registry %s is not available: %s failed %d times in %s, at last with: %s; run it again later, what was sent is kept, or go on for longer with --retry-for",
		e.Registry, e.Doing, e.Attempts, e.For.Round(time.Second), e.Detail)
}
