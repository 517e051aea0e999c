package siteimage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tazlab.net/castle/ci/publish/inputs"
)

// Index joins images of different platforms, in the order of the platforms' names whatever the order given. They are made from
// the same inputs.
func Index(made inputs.Inputs, images ...v1.Image) (v1.ImageIndex, error) {
	if len(images) == 0 {
		return nil, errors.New("image index: no images")
	}
	type member struct {
		platform string
		mutate.IndexAddendum
	}
	var members []member
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("image index: %w", err)
		}
		platform := config.Platform()
		members = append(members, member{platform.String(), mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: platform},
		}})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.platform, b.platform) })
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, m := range members {
		if i > 0 && members[i-1].platform == m.platform {
			return nil, fmt.Errorf("image index: two images for %s", m.platform)
		}
		index = mutate.AppendManifests(index, m.IndexAddendum)
	}
	return mutate.Annotations(index, made.Annotations()).(v1.ImageIndex), nil
}
