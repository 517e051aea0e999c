package imagepush

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"tazlab.net/castle/ci/publish/inputs"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
)

// difference says how the content of the registry's image or index differs from ours; "" means that it does not.
// Three things may differ: the compression of a layer, whose content is then compared; the labels of
// inputs.Incidental; and the digests and sizes that follow from both.
//
// Every document is compared byte for byte with what castle writes for these values: parsers disagree about a
// document that has a key twice.
func (s *session) difference(ctx context.Context, theirs []byte, ours ocilayout.Artifact) (string, error) {
	switch ours := ours.(type) {
	case v1.ImageIndex:
		return s.indexDifference(ctx, theirs, ours)
	case v1.Image:
		return s.imageDifference(ctx, theirs, ours)
	}
	return "", fmt.Errorf("%T is neither an image nor an index", ours)
}

func (s *session) indexDifference(ctx context.Context, theirs []byte, ours v1.ImageIndex) (string, error) {
	var found v1.IndexManifest
	own, err := ours.IndexManifest()
	if err != nil {
		return "", err
	}
	if json.Unmarshal(theirs, &found) != nil || len(found.Manifests) != len(own.Manifests) {
		return "it is not an index over the same platforms", nil
	}
	expected := own.DeepCopy()
	for i, child := range found.Manifests {
		expected.Manifests[i].Digest, expected.Manifests[i].Size = child.Digest, child.Size
	}
	if !isJSONOf(theirs, expected) {
		return "its index has other entries or annotations", nil
	}
	for i, child := range found.Manifests {
		if child.Digest == own.Manifests[i].Digest {
			continue
		}
		manifest, err := s.manifest(ctx, s.repository.Digest(child.Digest.String()))
		if err != nil {
			return "", err
		}
		image, err := ours.Image(own.Manifests[i].Digest)
		if err != nil {
			return "", err
		}
		if difference, err := s.imageDifference(ctx, manifest, image); difference != "" || err != nil {
			return fmt.Sprintf("for %s %s", child.Platform, difference), err
		}
	}
	return "", nil
}

func (s *session) imageDifference(ctx context.Context, theirs []byte, ours v1.Image) (string, error) {
	var found v1.Manifest
	own, err := ours.Manifest()
	if err != nil {
		return "", err
	}
	if json.Unmarshal(theirs, &found) != nil || len(found.Layers) != len(own.Layers) {
		return "it has other layers", nil
	}
	expected := own.DeepCopy()
	expected.Config.Digest, expected.Config.Size = found.Config.Digest, found.Config.Size
	for i, layer := range found.Layers {
		expected.Layers[i].Digest, expected.Layers[i].Size = layer.Digest, layer.Size
	}
	if !isJSONOf(theirs, expected) {
		return "its manifest has other media types or annotations", nil
	}
	if found.Config.Digest != own.Config.Digest {
		if same, err := s.sameConfig(ctx, found.Config, ours); err != nil || !same {
			return "its configuration is another one", err
		}
	}
	for i, layer := range found.Layers {
		if layer.Digest == own.Layers[i].Digest {
			continue
		}
		if same, err := s.sameContent(ctx, layer, ours, own.Layers[i].Digest); err != nil || !same {
			return fmt.Sprintf("layer %d of %d has other content", i+1, len(own.Layers)), err
		}
	}
	return "", nil
}

// isJSONOf tells whether a document is what this program makes of a value.
func isJSONOf(document []byte, value any) bool {
	made, err := json.Marshal(value)
	return err == nil && bytes.Equal(document, made)
}

// roomForLabels is how much longer than ours a configuration may be by its labels.
const roomForLabels = 64 << 10

func (s *session) sameConfig(ctx context.Context, theirs v1.Descriptor, ours v1.Image) (bool, error) {
	raw, err := ours.RawConfigFile()
	if err != nil {
		return false, err
	}
	own, err := ours.ConfigFile()
	if err != nil {
		return false, err
	}
	var text []byte
	if err := s.download(ctx, theirs, v1.Layer.Compressed, func(blob io.Reader) (err error) {
		text, err = io.ReadAll(io.LimitReader(blob, int64(len(raw)+roomForLabels)))
		return err
	}); err != nil {
		return false, err
	}
	var found v1.ConfigFile
	if json.Unmarshal(text, &found) != nil {
		return false, nil
	}
	expected := own.DeepCopy()
	for _, label := range inputs.Incidental {
		if value, there := found.Config.Labels[label]; there && expected.Config.Labels != nil {
			expected.Config.Labels[label] = value
		} else {
			delete(expected.Config.Labels, label)
		}
	}
	return isJSONOf(text, expected), nil
}

// sameContent tells whether a layer of the registry unpacks to what ours does.
func (s *session) sameContent(ctx context.Context, theirs v1.Descriptor, ours v1.Image, own v1.Hash) (bool, error) {
	layer, err := ours.LayerByDigest(own)
	if err != nil {
		return false, err
	}
	unpacked, err := layer.Uncompressed()
	if err != nil {
		return false, err
	}
	defer unpacked.Close()
	want := sha256.New()
	size, err := io.Copy(want, unpacked)
	if err != nil {
		return false, err
	}
	got := sha256.New()
	err = s.download(ctx, theirs, v1.Layer.Uncompressed, func(blob io.Reader) error {
		got.Reset()
		_, err := io.Copy(got, io.LimitReader(blob, size+1))
		return err
	})
	return err == nil && bytes.Equal(want.Sum(nil), got.Sum(nil)), err
}

// download reads a blob of the registry in one of its forms, compressed or not.
func (s *session) download(
	ctx context.Context, blob v1.Descriptor, form func(v1.Layer) (io.ReadCloser, error), use func(io.Reader) error,
) error {
	return s.retry(ctx, "blob "+blob.Digest.String(), blob.Size, func(ctx context.Context) error {
		layer, err := s.puller.Layer(ctx, s.repository.Digest(blob.Digest.String()))
		if err != nil {
			return err
		}
		content, err := form(layer)
		if err != nil {
			return err
		}
		defer content.Close()
		return use(content)
	})
}
