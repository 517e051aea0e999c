package publishtest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
	"tazlab.net/castle/ci/publish/worktree"
)

// CommitOf is the commit whose name begins with 7 digits.
func CommitOf(digits string) worktree.Commit {
	return worktree.Commit{
		SHA: digits + strings.Repeat("0", 40-len(digits)), Short: digits, Subject: "Write about " + digits,
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), RemoteURL: "https://example.org/blog.git",
	}
}

// NewImage is an image of random content.
func NewImage(t *testing.T) v1.Image {
	t.Helper()
	image, err := random.Image(20_000, 2)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func newLayout(t *testing.T, artifact ocilayout.Artifact) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	if err := ocilayout.Write(dir, artifact); err != nil {
		t.Fatal(err)
	}
	return dir
}

// DigestOf is the digest of an image or index.
func DigestOf(t *testing.T, artifact remote.Taggable) string {
	t.Helper()
	digest, err := artifact.(interface{ Digest() (v1.Hash, error) }).Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// Overwrite moves a tag past castle, as another tool would.
func (w *World) Overwrite(t *testing.T, tag string, image v1.Image) {
	t.Helper()
	if err := remote.Write(w.RemoteName(t, ":"+tag), image, w.RemoteAuth()); err != nil {
		t.Fatal(err)
	}
}

func (w *World) RemoteName(t *testing.T, suffix string) name.Reference {
	t.Helper()
	reference, err := name.ParseReference(w.Image() + suffix)
	if err != nil {
		t.Fatal(err)
	}
	return reference
}

func (w *World) RemoteAuth() remote.Option {
	return remote.WithAuth(&authn.Basic{Username: "robot", Password: RegistryPassword})
}
