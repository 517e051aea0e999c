// Build, publish and run a self-hosted platform: a Hugo blog from a clean
// commit to a rolled-out image, on a Kubernetes cluster that Flux reconciles.
//
// Start with `dagger call publish-blog --help`. Every function also runs in CI
// exactly as it runs on a laptop. What a repository publishes, and where, stands
// in its castle.yaml.
package main

import (
	"context"
	"fmt"

	"dagger/castle/internal/dagger"
)

// Castle composes containers and hands them arguments, secrets and services.
// What can be wrong stands in ordinary Go packages under ci/, compiled into the
// programs that run inside these containers.
//
// Its verbs are those that a person types. A pipeline that calls several of them
// says what they share once, to the objects site and cluster.
type Castle struct {
	// +private
	Self *dagger.Directory
	// Released has the programs, so that none is compiled.
	// +private
	Released *dagger.Container
	// Images is the text of images.yaml.
	// +private
	Images string
	// LocalImages is the text of images.local.yaml, which says what a mirror of
	// this machine holds in place of these images; mostly there is none.
	// +private
	LocalImages string
}

const localImagesFile = "images.local.yaml"

func New(
	ctx context.Context,
	// Castle's own source: its program is compiled from it, and images.yaml
	// names the images.
	// +defaultPath="/"
	// +ignore=["*", "!go.mod", "!go.sum", "!images.yaml", "!images.local.yaml", "!ci/**", "**/testdata", "**/*_test.go", "ci/test", "ci/bench"]
	self *dagger.Directory,
	// An image with castle's programs, Git and OpenSSH in it, used instead of
	// compiling them.
	// +optional
	castle *dagger.Container,
) (*Castle, error) {
	text, err := self.File("images.yaml").Contents(ctx)
	if err != nil {
		return nil, fmt.Errorf("castle's own source has no readable images.yaml: %w", err)
	}
	m := &Castle{Self: self, Released: castle, Images: text}
	local, err := self.Exists(ctx, localImagesFile)
	if err != nil {
		return nil, err
	}
	if local {
		if m.LocalImages, err = self.File(localImagesFile).Contents(ctx); err != nil {
			return nil, err
		}
		// No program is compiled anew because a stand-in was made anew.
		m.Self = self.WithoutFile(localImagesFile)
	}
	return m, nil
}
