package imagepush

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"

	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
)

// Options name what is pushed and where to.
type Options struct {
	Access
	Reference string // "[registry/]repository:tag"
	Layout    string // folder with an OCI layout that holds one image or index
	Rebuild   bool   // where the tag is another image, take the next one of its rebuilds instead
	// Before is called before anything is pushed, and not where the image is there already; its error ends the push. nil: nothing is.
	Before func(context.Context) error
	Known  Known // nil: only an image with the layout's content counts as the layout's

	compareOnly bool
}

// Known is asked about an image under the tag that says it was made from the same inputs, and has other content:
// whether anybody else than the registry, whose every user can write that, knows it as this tag's image.
type Known func(ctx context.Context, tag, digest string) (bool, error)

// Result is what a push came to.
type Result struct {
	Reference    string        `json:"reference"`    // as in Options, but for the tag of a rebuild
	Tag          string        `json:"tag"`          // of the reference
	Rebuild      Rebuild       `json:"-"`            // zero unless one was asked for
	Digest       string        `json:"digest"`       // that the registry gives for the tag
	BuildDigest  string        `json:"buildDigest"`  // the layout's own: another one where another build is there
	AlreadyThere bool          `json:"alreadyThere"` // the tag was this image before; nothing was sent
	Blobs        int           `json:"blobs"`        // uploaded, configurations included
	Bytes        int64         `json:"bytes"`        // of these blobs
	Attempts     int           `json:"attempts"`     // the most that one step took: 1 when nothing was repeated
	Duration     time.Duration `json:"duration"`     // nanoseconds
}

// Push pushes the layout's image or index and returns when the registry has confirmed it. Errors: *TagConflictError,
// *AuthError, *RefusedError (do not come again as they are), *UnavailableError (may work later), or the context's.
func Push(ctx context.Context, o Options) (Result, error) {
	result, err := push(ctx, o)
	if err != nil {
		return Result{}, fmt.Errorf("push %s: %w", o.Reference, err)
	}
	return result, nil
}

// Compare tells what Push would find, and sends nothing. Errors are those of Push.
func Compare(ctx context.Context, o Options) (Result, error) {
	o.compareOnly = true
	return Push(ctx, o)
}

// mostAtOnce is how often others may write the same meanwhile: the number of a rebuild, or an attachment.
const mostAtOnce = 6

func push(ctx context.Context, o Options) (Result, error) {
	start := time.Now()
	tag, err := o.parseTag(o.Reference)
	if err != nil {
		return Result{}, err
	}
	artifact, err := ocilayout.Read(o.Layout)
	if err != nil {
		return Result{}, err
	}
	want, err := artifact.Digest()
	if err != nil {
		return Result{}, err
	}
	s, err := o.open(tag.Context())
	if err != nil {
		return Result{}, err
	}
	defer s.done()
	s.known = o.Known
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, errTimeout)
	defer cancel()

	result := Result{BuildDigest: want.String()}
	err = s.under(ctx, tag, artifact, o, &result)
	for try := 1; try < mostAtOnce && o.Rebuild && errors.As(err, new(*TagConflictError)); try++ {
		err = s.under(ctx, tag, artifact, o, &result) // somebody else took that number meanwhile
	}
	if err != nil {
		return Result{}, err
	}
	result.Attempts, result.Duration = s.attempts, time.Since(start)
	return result, nil
}

// under finds what is there, and makes the tag where it may and is not. All of the result but Attempts and Duration is set.
func (s *session) under(ctx context.Context, tag name.Tag, artifact ocilayout.Artifact, o Options, result *Result) (err error) {
	var have v1.Hash
	target := tag
	if o.Rebuild {
		result.Rebuild, have, result.AlreadyThere, err = s.rebuild(ctx, tag, artifact)
		target = numbered(tag, result.Rebuild.Number)
	} else {
		have, result.AlreadyThere, err = s.compare(ctx, tag, artifact)
	}
	if err != nil {
		return err
	}
	result.Tag, result.Digest = target.TagStr(), result.BuildDigest
	result.Reference = strings.TrimSuffix(o.Reference, tag.TagStr()) + result.Tag
	switch {
	case result.AlreadyThere:
		result.Digest = have.String()
	case o.compareOnly:
	default:
		if o.Before != nil {
			if err := o.Before(ctx); err != nil {
				return err
			}
		}
		return s.publish(ctx, target, artifact, result)
	}
	return nil
}

// publish makes the tag, after everything that it stands for, and confirms it.
func (s *session) publish(ctx context.Context, tag name.Tag, artifact ocilayout.Artifact, result *Result) error {
	tree, err := flatten(artifact)
	if err != nil {
		return err
	}
	blobs, bytes, err := s.upload(ctx, tree.blobs)
	if err != nil {
		return err
	}
	result.Blobs, result.Bytes = result.Blobs+blobs, result.Bytes+bytes
	for _, manifest := range tree.manifests {
		digest, err := manifest.Digest()
		if err != nil {
			return err
		}
		if err := s.put(ctx, s.repository.Digest(digest.String()), manifest); err != nil {
			return err
		}
	}
	// A registry knows no "put if absent". The uploads may have taken minutes; this look leaves milliseconds.
	_, there, err := s.compare(ctx, tag, artifact)
	if err != nil {
		return err
	}
	if !there {
		if err := s.put(ctx, tag, artifact); err != nil {
			return err
		}
	}
	confirmed, err := s.confirm(ctx, tag, artifact)
	if err != nil {
		return err
	}
	result.Digest = confirmed.String()
	return nil
}

func (s *session) put(ctx context.Context, ref name.Reference, manifest remote.Taggable) error {
	return s.retry(ctx, "manifest "+ref.Identifier(), 0, func(ctx context.Context) error {
		return s.pusher.Put(ctx, ref, manifest)
	})
}

// upload sends the blobs that the registry lacks.
func (s *session) upload(ctx context.Context, blobs []v1.Layer) (count int, bytes int64, err error) {
	sent := make([]int64, len(blobs)) // sizes; 0 where it was there
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.SetLimit(jobs)
	for i, blob := range blobs {
		tasks.Go(func() error {
			digest, err := blob.Digest()
			if err != nil {
				return err
			}
			size, err := blob.Size()
			if err != nil {
				return err
			}
			watched := &watchedLayer{Layer: blob}
			if err := s.retry(ctx, "blob "+digest.String(), size, func(ctx context.Context) error {
				return s.pusher.Upload(ctx, s.repository, watched)
			}); err != nil {
				return err
			}
			if watched.read.Load() {
				sent[i] = size
			}
			return nil
		})
	}
	if err := tasks.Wait(); err != nil {
		return 0, 0, err
	}
	for _, size := range sent {
		if size > 0 {
			count, bytes = count+1, bytes+size
		}
	}
	return count, bytes, nil
}

// watchedLayer notes whether its bytes were asked for, which they are not where the registry has the blob.
type watchedLayer struct {
	v1.Layer
	read atomic.Bool
}

func (l *watchedLayer) Compressed() (io.ReadCloser, error) {
	l.read.Store(true)
	return l.Layer.Compressed()
}

// tree is an artifact in the order of pushing.
type tree struct {
	blobs     []v1.Layer           // each once
	manifests []ocilayout.Artifact // each once and after those it names, the artifact itself last
}

func flatten(artifact ocilayout.Artifact) (tree, error) {
	var t tree
	return t, t.add(artifact, map[v1.Hash]bool{})
}

func (t *tree) add(artifact ocilayout.Artifact, seen map[v1.Hash]bool) error {
	digest, err := artifact.Digest()
	if err != nil || seen[digest] {
		return err
	}
	seen[digest] = true
	switch a := artifact.(type) {
	case v1.ImageIndex:
		manifest, err := a.IndexManifest()
		if err != nil {
			return err
		}
		for _, child := range manifest.Manifests {
			var next ocilayout.Artifact
			switch {
			case child.MediaType.IsIndex():
				next, err = a.ImageIndex(child.Digest)
			case child.MediaType.IsImage():
				next, err = a.Image(child.Digest)
			default:
				err = fmt.Errorf("the index names %s of the media type %s, which is neither an image nor an index", child.Digest, child.MediaType)
			}
			if err != nil {
				return err
			}
			if err := t.add(next, seen); err != nil {
				return err
			}
		}
	case v1.Image:
		layers, err := a.Layers()
		if err != nil {
			return err
		}
		config, err := partial.ConfigLayer(a)
		if err != nil {
			return err
		}
		for _, blob := range append(layers, config) {
			digest, err := blob.Digest()
			if err != nil {
				return err
			}
			if !seen[digest] {
				seen[digest] = true
				t.blobs = append(t.blobs, blob)
			}
		}
	}
	t.manifests = append(t.manifests, artifact)
	return nil
}
