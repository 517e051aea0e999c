package main

import (
	"context"
	"fmt"
	"strings"

	"dagger/castle/internal/dagger"
)

// Places in the stand-in of OpenTofu's image, which the image itself does not
// have: there steps of their own download what is needed.
const (
	providersFolder   = "/usr/share/terraform/plugins"  // OpenTofu looks here before it asks a registry
	providersLock     = "/usr/share/castle/" + lockName // of those that were downloaded
	lockName          = "providers.lock.hcl"
	chartSources      = "/usr/share/castle/tools"
	terragruntProgram = "/usr/local/bin/terragrunt"
	tofuProgram       = "/usr/local/bin/tofu"
)

// terragruntReleases are what is fetched of Terragrunt, which has no image, where
// its project releases it: the version and the SHA-256 of the file, for each
// architecture of an engine.
var terragruntReleases = map[string]struct{ version, sha256 string }{
	// renovate: datasource=github-release-attachments depName=gruntwork-io/terragrunt
	"amd64": {"v1.1.3", "d5da6a66741f4ee752aa3b502b57e47fd6d5c178942861b2507f14f083e7606e"},
	// renovate: datasource=github-release-attachments depName=gruntwork-io/terragrunt
	"arm64": {"v1.1.3", "5e9b388402ab7075e907e8d8511662e2a828008129746e4e5e23de04c7b78ef4"},
}

// withLayerTools adds what the layers are run with: OpenTofu, its providers
// where they come by file, Terragrunt, and the charts.
//
// They are copied into one folder, which is copied once: engine v0.19.10 ends in
// a panic where a command's mounts include several parts of one image.
func (m *Castle) withLayerTools(ctx context.Context, container *dagger.Container, layers *dagger.Directory) (*dagger.Container, error) {
	image, err := m.image("opentofu", "")
	if err != nil {
		return nil, err
	}
	tools := dag.Directory().WithFile(tofuProgram, image.File(tofuProgram))

	has, err := image.Exists(ctx, terragruntProgram)
	if err != nil {
		return nil, err
	}
	program := image.File(terragruntProgram)
	if !has {
		if program, err = m.fetchTerragrunt(ctx); err != nil {
			return nil, err
		}
	}
	tools = tools.WithFile(terragruntProgram, program)

	if has, err = image.Exists(ctx, providersFolder); err != nil {
		return nil, err
	}
	if has {
		tools = tools.WithDirectory(providersFolder, image.Directory(providersFolder))
	} else {
		fetched, err := m.fetchProviders(ctx, image, layers)
		if err != nil {
			return nil, err
		}
		tools = tools.WithDirectory(providersFolder, fetched.Directory("plugins")).WithFile(providersLock, fetched.File(lockName))
	}
	charts, err := m.charts(ctx, image, layers)
	if err != nil {
		return nil, err
	}
	return container.WithDirectory("/", tools).WithMountedDirectory(chartsFolder, charts), nil
}

// fetchProviders downloads what the layers pin, once for each list of versions
// and hashes: no call asks a registry again, and none on the way out.
func (m *Castle) fetchProviders(ctx context.Context, tofu *dagger.Container, layers *dagger.Directory) (*dagger.Directory, error) {
	container, err := m.container(clusterProgram)
	if err != nil {
		return nil, err
	}
	pins := dag.Directory().WithFile("root.hcl", layers.File("root.hcl"))
	if has, err := layers.Exists(ctx, lockName); err != nil {
		return nil, err
	} else if has {
		pins = pins.WithFile(lockName, layers.File(lockName))
	}
	folder, err := container.
		WithFile(tofuProgram, tofu.File(tofuProgram)).
		WithMountedDirectory(layersMount, pins).
		WithExec([]string{clusterProgram, "providers", "--layers=" + layersMount, "--out=" + made}).
		Directory(made).
		Sync(ctx)
	return folder, plain(err)
}

// fetchTerragrunt is the release for the engine's architecture. A file with
// another checksum fails the step that asks for it.
func (m *Castle) fetchTerragrunt(ctx context.Context) (*dagger.File, error) {
	platform, err := dag.DefaultPlatform(ctx)
	if err != nil {
		return nil, err
	}
	_, architecture, _ := strings.Cut(string(platform), "/")
	architecture, _, _ = strings.Cut(architecture, "/") // a variant, such as v8
	release, known := terragruntReleases[architecture]
	if !known {
		return nil, fmt.Errorf("the engine's platform is %s: Terragrunt is pinned for linux/amd64 and linux/arm64", platform)
	}
	golang, err := m.image("golang", "")
	if err != nil {
		return nil, err
	}
	// Engine v0.19.10 has no checksums for HTTP, and its digest of a file is the
	// digest of a digest.
	name := "terragrunt_linux_" + architecture
	file := dag.HTTP("https://github.com/gruntwork-io/terragrunt/releases/download/"+release.version+"/"+name,
		dagger.HTTPOpts{Permissions: 0o755})
	return golang.
		WithWorkdir("/fetched").
		WithFile(name, file).
		WithNewFile("SHA256SUMS", release.sha256+"  "+name+"\n").
		WithExec([]string{"sha256sum", "--check", "--strict", "SHA256SUMS"}).
		File(name), nil
}

// charts puts the layers' charts together, once for each list of them.
func (m *Castle) charts(ctx context.Context, tofu *dagger.Container, layers *dagger.Directory) (*dagger.Directory, error) {
	container, err := m.container(clusterProgram)
	if err != nil {
		return nil, err
	}
	sources := dag.Directory().WithFile("charts.yaml", layers.File("charts.yaml")).WithDirectory("charts", layers.Directory("charts"))
	args := []string{clusterProgram, "charts", "--layers=" + layersMount, "--out=" + made}
	has, err := tofu.Exists(ctx, chartSources)
	if err != nil {
		return nil, err
	}
	if has {
		container = container.WithMountedDirectory(chartSources, tofu.Directory(chartSources))
		args = append(args, "--tools="+chartSources)
	}
	folder, err := container.WithMountedDirectory(layersMount, sources).WithExec(args).Directory(made).Sync(ctx)
	return folder, plain(err)
}
