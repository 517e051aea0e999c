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
	// Self is castle's own source: what dagger.json includes of its repository,
	// whichever way the module is called.
	// +private
	Self *dagger.Directory
	// Released has the programs, so that none is compiled.
	// +private
	Released *dagger.Container
	// LocalStates says that a real cluster's states may be in a volume of this
	// engine alone.
	// +private
	LocalStates bool
	// AllowUnpinned accepts downloads that nothing says what they should be.
	// +private
	AllowUnpinned bool
	// LocalImages is the text of images.local.yaml, where there is one.
	// +private
	LocalImages string
}

func New(
	ctx context.Context,
	// Where .dagger/images.local.yaml is, if there is any: what a mirror of this
	// machine has in place of the images that castle names.
	// +defaultPath="/"
	// +ignore=["*", "!.dagger/images.local.yaml"]
	mirrored *dagger.Directory,
	// An image with castle's programs, Git and OpenSSH in it, used instead of
	// compiling them. Default: the one that this release of the module names.
	// +optional
	castle *dagger.Container,
	// Compile the programs although this release names an image of them.
	// +optional
	compile bool,
	// local accepts, for this call, that a real cluster's states are in a volume of
	// this engine, where its cluster.yaml has state.backend: local. No other engine
	// sees them, and no call by another address of this module.
	// +optional
	state string,
	// Accept, for this call, charts, providers and an image of Hugo that nothing
	// says what they should be: whoever can change them on their way gets what they
	// are given. Default: refuse them. pin and pin-hugo write down what they are.
	// +optional
	allowUnpinned bool,
) (*Castle, error) {
	if state != "" && state != "local" {
		return nil, fmt.Errorf("--state %q: it can only be local; a store is described in cluster.yaml (state.backend: s3)", state)
	}
	m := &Castle{
		// What dagger.json includes is beside the module's own folder.
		Self:     dag.CurrentModule().Source().Directory(".."),
		Released: castle, LocalStates: state == "local", AllowUnpinned: allowUnpinned,
	}
	local, err := mirrored.Exists(ctx, localImages)
	if err != nil {
		return nil, err
	}
	if local {
		if m.LocalImages, err = mirrored.File(localImages).Contents(ctx); err != nil {
			return nil, err
		}
	}
	if castle == nil && !compile {
		m.Released, err = m.release()
	}
	return m, err
}
