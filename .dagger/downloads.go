package main

import (
	"context"

	"dagger/castle/internal/dagger"
)

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
	layers, err := repositorysLayers(ctx, repository)
	if err != nil {
		return nil, err
	}
	container, err := m.container(clusterProgram)
	if err != nil {
		return nil, err
	}
	const list = "charts.yaml"
	file, err := uncached(container).
		WithMountedDirectory(layersMount, dag.Directory().WithFile(list, layers.File(list))).
		WithExec([]string{clusterProgram, "pin-charts", "--layers=" + layersMount, "--out=/" + list}).
		File("/" + list).
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
	layers, err := repositorysLayers(ctx, repository)
	if err != nil {
		return nil, err
	}
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
