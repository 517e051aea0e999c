package main

import (
	"context"
	"fmt"

	"dagger/castle/internal/dagger"
)

// Places in the stand-in of OpenTofu's image, which the image itself does not
// have: there the tools download what they need.
const (
	providersFolder   = "/usr/share/terraform/plugins" // OpenTofu looks here before it asks a registry
	chartSources      = "/usr/share/castle/tools"
	terragruntProgram = "/usr/local/bin/terragrunt"
	tofuProgram       = "/usr/local/bin/tofu"
)

// terragruntRelease has no image, so it is fetched where its project releases
// it.
//
// renovate: datasource=github-releases depName=gruntwork-io/terragrunt
const terragruntRelease = "v1.1.0"

// withLayerTools adds what the layers are run with: OpenTofu, its providers
// where they come by file, Terragrunt, and the charts.
//
// They are copied into one folder, which is copied once: engine v0.19.10 ends in
// a panic where a command's mounts include several parts of one image.
func (m *Castle) withLayerTools(ctx context.Context, container *dagger.Container, terragrunt *dagger.Directory) (*dagger.Container, error) {
	image, err := m.image("opentofu", "")
	if err != nil {
		return nil, err
	}
	tools := dag.Directory().WithFile(tofuProgram, image.File(tofuProgram))

	program := dag.HTTP(fmt.Sprintf("https://github.com/gruntwork-io/terragrunt/releases/download/%s/terragrunt_linux_amd64", terragruntRelease),
		dagger.HTTPOpts{Permissions: 0o755})
	has, err := image.Exists(ctx, terragruntProgram)
	if err != nil {
		return nil, err
	}
	if has {
		program = image.File(terragruntProgram)
	}
	tools = tools.WithFile(terragruntProgram, program)

	if has, err = image.Exists(ctx, providersFolder); err != nil {
		return nil, err
	}
	if has {
		tools = tools.WithDirectory(providersFolder, image.Directory(providersFolder))
	}
	charts, err := m.charts(ctx, image, terragrunt)
	if err != nil {
		return nil, err
	}
	return container.WithDirectory("/", tools).WithMountedDirectory(chartsFolder, charts), nil
}

// charts puts the layers' charts together, once for each list of them.
func (m *Castle) charts(ctx context.Context, tofu *dagger.Container, terragrunt *dagger.Directory) (*dagger.Directory, error) {
	container, err := m.container(clusterProgram)
	if err != nil {
		return nil, err
	}
	sources := dag.Directory().WithFile("charts.yaml", terragrunt.File("charts.yaml")).WithDirectory("charts", terragrunt.Directory("charts"))
	args := []string{clusterProgram, "charts", "--terragrunt=" + terragruntMount, "--out=" + made}
	has, err := tofu.Exists(ctx, chartSources)
	if err != nil {
		return nil, err
	}
	if has {
		container = container.WithMountedDirectory(chartSources, tofu.Directory(chartSources))
		args = append(args, "--tools="+chartSources)
	}
	folder, err := container.WithMountedDirectory(terragruntMount, sources).WithExec(args).Directory(made).Sync(ctx)
	return folder, plain(err)
}
