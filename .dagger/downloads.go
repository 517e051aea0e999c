package main

import (
	"context"

	"dagger/castle/internal/dagger"
)

// Pin is the folder of the layers with everything pinned that they download:
// those of the repository, or castle's own where it has none. `dagger call pin
// export --path layers` writes both, and from then on the repository's clusters
// use this folder, and nothing else is installed. Look at what changed before you
// commit it, and call it from a network that you trust.
//
// +cache="never"
func (m *Castle) Pin(
	ctx context.Context,
	// The repository with the layers. Default: the repository that the module is
	// called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
) (_ *dagger.Directory, err error) {
	defer ended("pin", FormatText, &err)
	named, err := m.namedFolders(ctx, repository)
	if err != nil {
		return nil, err
	}
	layers := m.layersOf(repository, named.Layers)
	charts, err := m.pinnedCharts(ctx, layers)
	if err != nil {
		return nil, err
	}
	lock, err := m.pinnedProviders(ctx, layers)
	if err != nil {
		return nil, err
	}
	return layers.WithFile(chartsList, charts).WithFile(lockName, lock), nil
}

// PinCharts downloads what the layers' charts are made of, as it is now, and is
// the list of them with its digests: `dagger call pin-charts export --path
// terragrunt/charts.yaml`. Look at what changed before you commit it: from then
// on nothing else is installed.
//
// +cache="never"
func (m *Castle) PinCharts(
	ctx context.Context,
	// The repository with the layers. Default: the repository that the module is
	// called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
) (_ *dagger.File, err error) {
	defer ended("pin-charts", FormatText, &err)
	layers, err := m.repositorysLayers(ctx, repository)
	if err != nil {
		return nil, err
	}
	return m.pinnedCharts(ctx, layers)
}

// chartsList is the list of charts in the folder of the layers.
const chartsList = "charts.yaml"

func (m *Castle) pinnedCharts(ctx context.Context, layers *dagger.Directory) (*dagger.File, error) {
	container, err := m.container(clusterProgram)
	if err != nil {
		return nil, err
	}
	file, err := uncached(container).
		WithMountedDirectory(layersMount, dag.Directory().WithFile(chartsList, layers.File(chartsList))).
		WithExec([]string{clusterProgram, "pin-charts", "--layers=" + layersMount, "--out=/" + chartsList}).
		File("/" + chartsList).
		Sync(ctx)
	return file, plain(err)
}

// PinProviders asks the registry for the hashes of the layers' providers, for
// each platform of an engine, and is OpenTofu's lock file of them: `dagger call
// pin-providers export --path terragrunt/providers.lock.hcl`. Look at what
// changed before you commit it: from then on nothing else is installed.
//
// +cache="never"
func (m *Castle) PinProviders(
	ctx context.Context,
	// The repository with the layers. Default: the repository that the module is
	// called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
) (_ *dagger.File, err error) {
	defer ended("pin-providers", FormatText, &err)
	layers, err := m.repositorysLayers(ctx, repository)
	if err != nil {
		return nil, err
	}
	return m.pinnedProviders(ctx, layers)
}

func (m *Castle) pinnedProviders(ctx context.Context, layers *dagger.Directory) (*dagger.File, error) {
	container, err := m.container(clusterProgram)
	if err != nil {
		return nil, err
	}
	tofu, err := m.image("opentofu", "")
	if err != nil {
		return nil, err
	}
	const root, lock = "root.hcl", lockName
	file, err := uncached(container).
		WithFile(tofuProgram, tofu.File(tofuProgram)).
		WithMountedDirectory(layersMount, dag.Directory().WithFile(root, layers.File(root))).
		WithExec([]string{clusterProgram, "pin-providers", "--layers=" + layersMount, "--out=/" + lock}).
		File("/" + lock).
		Sync(ctx)
	return file, plain(err)
}
