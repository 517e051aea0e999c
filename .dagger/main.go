// Build, publish and run a self-hosted platform: a Hugo blog from a clean
// commit to a rolled-out image, on a Kubernetes cluster that Flux reconciles.
//
// Start with `dagger call publish-blog --help`. Every function also runs in CI
// exactly as it runs on a laptop.
package main

import (
	"context"
	"fmt"

	"dagger/castle/internal/dagger"
)

// Castle composes containers and hands them arguments, secrets and services.
// What can be wrong stands in ordinary Go packages under ci/, compiled into the
// programs that run inside these containers.
type Castle struct {
	// +private
	Self *dagger.Directory
	// Images is the text of images.yaml.
	// +private
	Images string
}

func New(
	ctx context.Context,
	// Castle's own source: its program is compiled from it, and images.yaml
	// names the images.
	// +defaultPath="/"
	// +ignore=["*", "!go.mod", "!go.sum", "!images.yaml", "!ci/**", "**/testdata", "**/*_test.go"]
	self *dagger.Directory,
) (*Castle, error) {
	text, err := self.File("images.yaml").Contents(ctx)
	if err != nil {
		return nil, fmt.Errorf("castle's own source has no readable images.yaml: %w", err)
	}
	return &Castle{Self: self, Images: text}, nil
}
