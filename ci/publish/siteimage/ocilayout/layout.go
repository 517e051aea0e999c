package ocilayout

import (
	"fmt"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Artifact is what a layout holds one of: a v1.Image or a v1.ImageIndex.
type Artifact interface {
	Digest() (v1.Hash, error)
	MediaType() (types.MediaType, error)
	RawManifest() ([]byte, error)
	Size() (int64, error)
}

// Write makes the folder dir a layout that holds exactly the artifact. The folder must be empty or missing.
func Write(dir string, artifact Artifact) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("write OCI layout: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("write OCI layout: %s is not empty; name a new folder", dir)
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write OCI layout: %w", err)
	}
	switch a := artifact.(type) {
	case v1.ImageIndex:
		err = path.AppendIndex(a)
	case v1.Image:
		err = path.AppendImage(a)
	default:
		err = fmt.Errorf("%T is neither an image nor an index", artifact)
	}
	if err != nil {
		return fmt.Errorf("write OCI layout %s: %w", dir, err)
	}
	return nil
}

// Read returns the one image or index of the layout in the folder dir.
func Read(dir string) (Artifact, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("read OCI layout: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read OCI layout %s: %w", dir, err)
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("OCI layout %s holds %d artifacts; exactly one is expected", dir, len(manifest.Manifests))
	}
	only := manifest.Manifests[0]
	var artifact Artifact
	switch {
	case only.MediaType.IsIndex():
		artifact, err = index.ImageIndex(only.Digest)
	case only.MediaType.IsImage():
		artifact, err = index.Image(only.Digest)
	default:
		err = fmt.Errorf("%s is neither an image nor an index", only.MediaType)
	}
	if err != nil {
		return nil, fmt.Errorf("read OCI layout %s: %w", dir, err)
	}
	return artifact, nil
}
