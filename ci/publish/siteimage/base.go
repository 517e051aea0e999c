package siteimage

import (
	"errors"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// baseLayer is a layer of the base, byte for byte, under the OCI name of its media type. It knows its diff ID from the
// base's configuration; otherwise the library would decompress the whole layer to compute it.
type baseLayer struct {
	v1.Layer
	diffID    v1.Hash
	mediaType types.MediaType
}

func (l *baseLayer) DiffID() (v1.Hash, error)            { return l.diffID, nil }
func (l *baseLayer) MediaType() (types.MediaType, error) { return l.mediaType, nil }

func baseLayers(base v1.Image) ([]v1.Layer, Report, error) {
	var report Report
	config, err := base.ConfigFile()
	if err != nil {
		return nil, report, err
	}
	if config.OS != "linux" || config.Architecture == "" {
		return nil, report, fmt.Errorf("its platform is %q; it must be linux with an architecture", config.Platform())
	}
	layers, err := base.Layers()
	if err != nil {
		return nil, report, err
	}
	if len(layers) != len(config.RootFS.DiffIDs) {
		return nil, report, errors.New("its configuration and its manifest count different numbers of layers")
	}
	for i, l := range layers {
		mediaType, err := l.MediaType()
		if err != nil {
			return nil, report, err
		}
		switch mediaType {
		case types.DockerLayer:
			mediaType = types.OCILayer
		case types.DockerUncompressedLayer:
			mediaType = types.OCIUncompressedLayer
		}
		layers[i] = &baseLayer{l, config.RootFS.DiffIDs[i], mediaType}
		row := Layer{Name: fmt.Sprintf("base %d/%d", i+1, len(layers)), DiffID: config.RootFS.DiffIDs[i].String(), Unchanged: true}
		if row.Compressed, err = l.Size(); err != nil {
			return nil, report, err
		}
		digest, err := l.Digest()
		if err != nil {
			return nil, report, err
		}
		row.Digest = digest.String()
		report.Layers = append(report.Layers, row)
	}
	return layers, report, nil
}
