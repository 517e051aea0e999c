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
	// The folder with the layers and the clusters, or a repository that holds it.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	terragrunt *dagger.Directory,
) (_ *dagger.File, err error) {
	defer ended("pin-charts", FormatText, &err)
	layers, err := layersOf(ctx, terragrunt)
	if err != nil {
		return nil, err
	}
	container, err := m.container(clusterProgram)
	if err != nil {
		return nil, err
	}
	const list = "charts.yaml"
	file, err := uncached(container).
		WithMountedDirectory(terragruntMount, dag.Directory().WithFile(list, layers.File(list))).
		WithExec([]string{clusterProgram, "pin-charts", "--terragrunt=" + terragruntMount, "--out=/" + list}).
		File("/" + list).
		Sync(ctx)
	return file, plain(err)
}
