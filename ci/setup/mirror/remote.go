package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// AnnotationSource is set on an index that holds only some of its upstream's platforms: upstream's digest.
const AnnotationSource = "net.tazlab.castle.mirror.source"

// access is how registries are talked to. Temporary faults (a cut connection, 429, 5xx) are tried
// again by the library, a few times within seconds.
func access(ctx context.Context, keychain authn.Keychain) []remote.Option {
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain)}
}

func notFound(err error) bool {
	answer := (*transport.Error)(nil)
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}

// explain adds to a registry's refusal what to do about it.
func explain(host string, err error) error {
	answer := (*transport.Error)(nil)
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%s refuses these credentials (log in with: docker login %s): %w", host, host, err)
	case http.StatusTooManyRequests:
		return fmt.Errorf("%s limits how much may be pulled (log in with: docker login %s, or come back later): %w", host, host, err)
	default:
		return err
	}
}

// platformsOf reads "linux/amd64" and the like.
func platformsOf(texts []string) ([]v1.Platform, error) {
	var platforms []v1.Platform
	for _, text := range texts {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return nil, err
		}
		platforms = append(platforms, *platform)
	}
	return platforms, nil
}

// matching gives the descriptors of an index that are for one of the platforms, and the platforms that none is for.
func matching(index *v1.IndexManifest, platforms []v1.Platform) (found []v1.Descriptor, lacking []string) {
	for _, platform := range platforms {
		at := slices.IndexFunc(index.Manifests, func(d v1.Descriptor) bool {
			return d.Platform != nil && d.Platform.Satisfies(platform)
		})
		if at < 0 {
			lacking = append(lacking, platform.String())
			continue
		}
		found = append(found, index.Manifests[at])
	}
	return found, lacking
}

// platformOf is what a single image runs on.
func platformOf(image v1.Image) (v1.Platform, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return v1.Platform{}, err
	}
	if platform := config.Platform(); platform != nil {
		return *platform, nil
	}
	return v1.Platform{}, errors.New("the image does not say what it runs on")
}

// others gives those of the platforms that an image for one does not serve.
func others(one v1.Platform, platforms []v1.Platform) []string {
	var lacking []string
	for _, platform := range platforms {
		if !one.Satisfies(platform) {
			lacking = append(lacking, platform.String())
		}
	}
	return lacking
}

func lackError(lacking []string) error {
	return fmt.Errorf("there is none for %s", strings.Join(lacking, ", "))
}
