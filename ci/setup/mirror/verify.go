package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/setup/images"
)

// VerifyOptions say which images a mirror should have.
type VerifyOptions struct {
	List images.List
	// Registry is the mirror's address in the form that SyncOptions.To has, "localhost:5000" for a Serve on this machine.
	Registry string
	// StandInsOnly leaves out the entries without a stand-in: what Build cannot have put there.
	StandInsOnly bool
	// Keychain has the mirror's credentials; nil means those of docker login.
	Keychain authn.Keychain
}

// Finding is what was seen of one image of the list.
type Finding struct {
	Image    images.Image
	At       string // where it was looked for, with the tag
	Digest   string // of what is there; "" where nothing is
	StandIn  bool   // made by Build, not the real image
	MadeFrom string // a stand-in's own word of what is in it
	Problem  error  // nil where all is well
}

// String is one line for a person.
func (f Finding) String() string {
	switch {
	case f.Problem != nil:
		return fmt.Sprintf("%s: %v", f.At, f.Problem)
	case f.StandIn:
		return fmt.Sprintf("%s: stand-in %s (%s)", f.At, f.Digest, f.MadeFrom)
	case f.Image.Digest != "" && f.Digest != f.Image.Digest:
		return fmt.Sprintf("%s: %s, some platforms of %s", f.At, f.Digest, f.Image.Digest)
	default:
		return fmt.Sprintf("%s: %s", f.At, f.Digest)
	}
}

// Verify looks at the mirror for every image of the list: that it is there, for the platforms of its entry, and made from
// the digest that the list has, if any. A stand-in needs one of the platforms, since it is made for one machine, and has
// no digest to compare. The findings are complete, in the list's order; the error joins their problems.
func Verify(ctx context.Context, opts VerifyOptions) ([]Finding, error) {
	mirror, err := parseAddress(opts.Registry)
	if err != nil {
		return nil, fmt.Errorf("mirror %q: %w", opts.Registry, err)
	}
	var findings []Finding
	var problems []error
	for _, image := range opts.List {
		if opts.StandInsOnly && image.StandIn == images.StandInNone {
			continue
		}
		tag, err := mirror.tag(image)
		if err != nil {
			return nil, err
		}
		finding := Finding{Image: image, At: tag.Name()}
		finding.Problem = explain(mirror.host, finding.look(tag, access(ctx, opts.Keychain)))
		if ctx.Err() != nil {
			return findings, fmt.Errorf("look at %s: %w", tag.Name(), context.Cause(ctx))
		}
		if finding.Problem != nil {
			problems = append(problems, errors.New(finding.String()))
		}
		findings = append(findings, finding)
	}
	return findings, errors.Join(problems...)
}

// look fills in the finding from what is at tag and returns its problem.
func (f *Finding) look(tag name.Tag, options []remote.Option) error {
	platforms, err := platformsOf(f.Image.Platforms)
	if err != nil {
		return err
	}
	there, err := remote.Get(tag, options...)
	if notFound(err) {
		return errors.New("missing")
	}
	if err != nil {
		return err
	}
	f.Digest = there.Digest.String()
	if there.MediaType.IsIndex() {
		return f.lookAtIndex(tag, there, options)
	}
	image, err := there.Image()
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	one, err := platformOf(image)
	if err != nil {
		return err
	}
	lacking := others(one, platforms)
	if of := config.Config.Labels[LabelStandIn]; of != "" {
		f.StandIn, f.MadeFrom = true, config.Config.Labels[LabelMadeFrom]
		if of != f.Image.Reference() {
			return fmt.Errorf("is a stand-in for %s", of)
		}
		if len(lacking) == len(platforms) {
			return fmt.Errorf("is a stand-in for %s, not for %s", one, strings.Join(lacking, " or "))
		}
		return nil
	}
	if len(lacking) > 0 {
		return lackError(lacking)
	}
	return f.compare(f.Digest)
}

func (f *Finding) lookAtIndex(tag name.Tag, there *remote.Descriptor, options []remote.Option) error {
	index, err := there.ImageIndex()
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	platforms, err := platformsOf(f.Image.Platforms)
	if err != nil {
		return err
	}
	found, lacking := matching(manifest, platforms)
	if len(lacking) > 0 {
		return lackError(lacking)
	}
	for _, descriptor := range found {
		if _, err := remote.Head(tag.Context().Digest(descriptor.Digest.String()), options...); notFound(err) {
			return fmt.Errorf("names %s for %s, which is missing", descriptor.Digest, descriptor.Platform)
		} else if err != nil {
			return err
		}
	}
	return f.compare(f.Digest, manifest.Annotations[AnnotationSource])
}

// compare wants the list's digest, where it has one, to be one of those that the image can show.
func (f *Finding) compare(shown ...string) error {
	if f.Image.Digest == "" || slices.Contains(shown, f.Image.Digest) {
		return nil
	}
	return fmt.Errorf("is not what images.yaml names: it has %s, wanted is %s", strings.TrimSpace(strings.Join(shown, " ")), f.Image.Digest)
}
