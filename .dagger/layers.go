package main

import (
	"context"
	"errors"

	"dagger/castle/internal/dagger"
)

// Where the layers are: in castle's own source, and in a released image.
const (
	ownLayers      = "terragrunt"
	releasedLayers = "/usr/share/castle/layers"
)

// layersOf are the layers that a repository's clusters are made with: those of
// its own folder, where it has one, else those that come with castle.
func (m *Castle) layersOf(repository *dagger.Directory, folder string) *dagger.Directory {
	if folder != "" {
		return repository.Directory(folder)
	}
	return m.layers()
}

// repositorysLayers are the layers that stand in a repository itself.
func (m *Castle) repositorysLayers(ctx context.Context, repository *dagger.Directory) (*dagger.Directory, error) {
	named, err := m.namedFolders(ctx, repository)
	if err != nil {
		return nil, err
	}
	if named.Layers == "" {
		return nil, errors.New("this repository has no layers of its own, and uses those of castle with what castle pins of them: " +
			"to pin more, or to change them, write them out first with dagger call eject export --path layers")
	}
	return repository.Directory(named.Layers), nil
}

// layers are those that come with castle.
func (m *Castle) layers() *dagger.Directory {
	if m.Released != nil {
		return m.Released.Directory(releasedLayers)
	}
	return m.Self.Directory(ownLayers)
}

// Eject is the folder of the layers that come with castle: units, modules and
// charts, to be changed in a repository of one's own:
//
//	dagger call eject export --path layers
//
// Calls on the clusters of that repository then use this folder, and what a later
// release of castle changes in the layers is to be taken over by hand.
func (m *Castle) Eject(ctx context.Context) (*dagger.Directory, error) {
	return m.layers().Sync(ctx)
}
