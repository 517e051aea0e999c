package ocilayout

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image opens one image: out of a folder with an OCI layout, a tar file of such a folder, or a tar file as `docker
// save` wrote it before it knew OCI. Platform ("os/arch" or "os/arch/variant") chooses where several images are held;
// "" is for the only one. Blobs are read from path when they are asked for, so path must stay as long as the image.
func Image(path, platform string) (v1.Image, error) {
	image, err := open(path, platform)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", path, err)
	}
	return image, nil
}

func open(path, platform string) (v1.Image, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return choose(folder(path), platform)
	}
	archive, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	// An archive may be of both kinds. The OCI side keeps the layers' compressed bytes, the other has none.
	if archive.has("index.json") {
		return choose(archive, platform)
	}
	if !archive.has("manifest.json") {
		return nil, errors.New("neither an OCI layout (index.json) nor a Docker archive (manifest.json)")
	}
	image, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		return nil, err
	}
	return image, checkPlatform(image, platform)
}

// files is where a layout's files are read from, by their slash-separated names.
type files interface {
	open(name string) (io.ReadCloser, error)
}

type folder string

func (f folder) open(name string) (io.ReadCloser, error) {
	file, err := os.OpenInRoot(string(f), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: not an OCI layout, or not all of it", name)
	}
	return file, err
}

func choose(f files, platform string) (v1.Image, error) {
	root, err := read(f, "index.json")
	if err != nil {
		return nil, err
	}
	candidates, err := images(f, root, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range candidates {
		if platform == "" && len(candidates) == 1 {
			return newImage(f, c)
		}
		image, err := newImage(f, c)
		if err != nil {
			return nil, err
		}
		name := platformOf(image)
		if name == platform || strings.HasPrefix(name, platform+"/") && platform != "" {
			return image, nil
		}
		names = append(names, name)
	}
	if platform == "" {
		return nil, fmt.Errorf("holds %d images (%s); name the platform", len(names), strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("has no image for %s; it has %s", platform, strings.Join(names, ", "))
}

// images collects the images of an index and of the indexes in it.
func images(f files, rawIndex []byte, found []v1.Descriptor) ([]v1.Descriptor, error) {
	index, err := v1.ParseIndexManifest(strings.NewReader(string(rawIndex)))
	if err != nil {
		return nil, err
	}
	for _, d := range index.Manifests {
		switch {
		case d.MediaType.IsIndex():
			raw, err := read(f, blobName(d.Digest))
			if err != nil {
				return nil, err
			}
			if found, err = images(f, raw, found); err != nil {
				return nil, err
			}
		case d.MediaType.IsImage() && (d.Platform == nil || d.Platform.OS != "unknown"): // attestations are unknown/unknown
			found = append(found, d)
		}
	}
	return found, nil
}

func checkPlatform(image v1.Image, platform string) error {
	if name := platformOf(image); platform != "" && name != platform && !strings.HasPrefix(name, platform+"/") {
		return fmt.Errorf("has no image for %s; it has %s", platform, name)
	}
	return nil
}

// platformOf reads the platform from the image's own configuration, since a descriptor may leave it out.
func platformOf(image v1.Image) string {
	config, err := image.ConfigFile()
	if err != nil {
		return "unreadable"
	}
	return config.Platform().String()
}

func blobName(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }

func read(f files, name string) ([]byte, error) {
	r, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// layoutImage is the part of a v1.Image that package partial completes.
type layoutImage struct {
	files      files
	descriptor v1.Descriptor
	raw        []byte
	manifest   *v1.Manifest
}

func newImage(f files, d v1.Descriptor) (v1.Image, error) {
	raw, err := read(f, blobName(d.Digest))
	if err != nil {
		return nil, err
	}
	manifest, err := v1.ParseManifest(strings.NewReader(string(raw)))
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(&layoutImage{f, d, raw, manifest})
}

func (i *layoutImage) MediaType() (types.MediaType, error) { return i.descriptor.MediaType, nil }
func (i *layoutImage) RawManifest() ([]byte, error)        { return i.raw, nil }
func (i *layoutImage) RawConfigFile() ([]byte, error) {
	return read(i.files, blobName(i.manifest.Config.Digest))
}

func (i *layoutImage) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	for _, d := range append([]v1.Descriptor{i.manifest.Config}, i.manifest.Layers...) {
		if d.Digest == digest {
			return &layoutBlob{i.files, d}, nil
		}
	}
	return nil, fmt.Errorf("no blob %s in the image", digest)
}

type layoutBlob struct {
	files      files
	descriptor v1.Descriptor
}

func (b *layoutBlob) Digest() (v1.Hash, error)            { return b.descriptor.Digest, nil }
func (b *layoutBlob) Size() (int64, error)                { return b.descriptor.Size, nil }
func (b *layoutBlob) MediaType() (types.MediaType, error) { return b.descriptor.MediaType, nil }
func (b *layoutBlob) Compressed() (io.ReadCloser, error) {
	return b.files.open(blobName(b.descriptor.Digest))
}
