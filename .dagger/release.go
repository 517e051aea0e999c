package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"dagger/castle/internal/dagger"
)

// usersPlatforms are those of users' machines.
var usersPlatforms = []dagger.Platform{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// Release makes a release of castle: its image with the programs, pushed, signed
// and with SBOM and provenance beside it; and a folder with the program for users'
// machines, SBOMs, provenance and signed checksums.
//
// The version is castle's own, as ci/base/version and CHANGELOG.md have it; the
// working tree has to be clean. A tag is never moved: the same call again goes on
// where one failed. docs/releases.md says how a release is made, rehearsed and
// verified. `dagger call release --version v0.1.0 … export --path dist`
//
// +cache="never"
func (m *Castle) Release(
	ctx context.Context,
	// The version, such as v0.1.0.
	version string,
	// The repository of castle's image.
	image string,
	// The private key to sign with, which cosign generate-key-pair made.
	cosignKey *dagger.Secret,
	// The private key's password.
	// +optional
	cosignPassword *dagger.Secret,
	// Castle's working tree, with its history.
	// +defaultPath="/"
	source *dagger.Directory,
	// The repository's address, where the tree's remote is not the one that users
	// know.
	// +optional
	sourceUrl string,
	// Who builds, as an address: a workflow with its ref. It stands in the
	// provenance.
	// +default="https://localhost/by-hand"
	builder string,
	// The user name for the registry.
	// +optional
	registryUsername string,
	// The password or token for the registry (env:NAME, file:PATH, op://…).
	// +optional
	registryPassword *dagger.Secret,
	// The registry as a service, where only this machine reaches it
	// (tcp://localhost:5000).
	// +optional
	registryService *dagger.Service,
	// The image's platforms. Default: linux/amd64 and linux/arm64.
	// +optional
	platforms []dagger.Platform,
	// The platforms of the program for users' machines. Default: linux and darwin,
	// amd64 and arm64 each.
	// +optional
	hostPlatforms []dagger.Platform,
	// Rehearse a version that is none yet, such as v0.1.0-dev, into a registry of
	// one's own.
	// +optional
	rehearse bool,
) (*dagger.Directory, error) {
	if len(platforms) == 0 {
		platforms = []dagger.Platform{"linux/amd64", "linux/arm64"}
	}
	if len(hostPlatforms) == 0 {
		hostPlatforms = usersPlatforms
	}
	container, err := m.container(releaseProgram)
	if err != nil {
		return nil, err
	}
	base, err := m.entry("golang")
	if err != nil {
		return nil, err
	}
	programs, err := m.programs(hostPlatforms, "castle")
	if err != nil {
		return nil, err
	}
	inside, err := m.programs(platforms, released...)
	if err != nil {
		return nil, err
	}
	args := []string{releaseProgram, "make", "--version=" + version, "--image=" + image, "--source=/source", "--source-url=" + sourceUrl, "--builder=" + builder,
		"--base=" + base.pinned(), "--programs=/programs", "--inside=/inside", fmt.Sprintf("--rehearse=%t", rehearse), "--out=" + made}
	for i, platform := range platforms {
		one, err := m.Image(platform)
		if err != nil {
			return nil, err
		}
		file := fmt.Sprintf("/images/%d.tar", i)
		container = container.WithMountedFile(file, one.AsTarball())
		args = append(args, "--image-tar="+file)
	}
	container, flags, err := registry{image: image, username: registryUsername, password: registryPassword, service: registryService}.attach(container)
	if err != nil {
		return nil, err
	}
	files, err := uncached(container).
		With(signing{key: cosignKey, password: cosignPassword}.secrets).
		WithMountedDirectory("/source", source).
		WithMountedDirectory("/programs", programs).
		WithMountedDirectory("/inside", inside).
		WithExec(append(args, flags...)).
		Directory(made).
		Sync(ctx)
	return files, plain(err)
}

// programs are compiled for several platforms, in folders such as linux_amd64.
func (m *Castle) programs(platforms []dagger.Platform, names ...string) (*dagger.Directory, error) {
	all := dag.Directory()
	for _, platform := range platforms {
		for _, name := range names {
			file, err := m.compile(name, platform)
			if err != nil {
				return nil, err
			}
			all = all.WithFile(strings.ReplaceAll(string(platform), "/", "_")+"/"+name, file)
		}
	}
	return all, nil
}

// VerifyRelease verifies a release of castle: the signature of its checksums, each
// file, the SBOMs, the provenance, and the image with its signature, SBOM and
// provenance. What is missing or wrong is listed, and fails the call.
//
// +cache="never"
func (m *Castle) VerifyRelease(
	ctx context.Context,
	// The release's files, as they were downloaded.
	folder *dagger.Directory,
	// The public key of those who release (cosign.pub), from somewhere else than
	// the release.
	publicKey *dagger.File,
	// The version that it is to be. Default: any.
	// +optional
	version string,
	// Leave the image out.
	// +optional
	filesOnly bool,
	// The user name for the registry.
	// +optional
	registryUsername string,
	// The password or token for the registry (env:NAME, file:PATH, op://…).
	// +optional
	registryPassword *dagger.Secret,
	// The registry as a service, where only this machine reaches it
	// (tcp://localhost:5000).
	// +optional
	registryService *dagger.Service,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (_ string, err error) {
	defer ended("verify-release", format, &err)
	container, err := m.container(releaseProgram)
	if err != nil {
		return "", err
	}
	at := registry{username: registryUsername, password: registryPassword, service: registryService}
	if registryService != nil {
		// Only the release says which registry its image is in.
		if at.image, err = releasedImage(ctx, folder); err != nil {
			return "", err
		}
	}
	container, flags, err := at.attach(container)
	if err != nil {
		return "", err
	}
	args := []string{releaseProgram, "verify", "--folder=/release", "--public-key=/cosign.pub", "--version=" + version,
		fmt.Sprintf("--files-only=%t", filesOnly), "--format=" + string(format)}
	text, err := uncached(container).
		WithMountedDirectory("/release", folder).
		WithMountedFile("/cosign.pub", publicKey).
		WithExec(append(args, flags...)).
		Stdout(ctx)
	return text, plain(err)
}

// releasedImage is the repository of a release's image.
func releasedImage(ctx context.Context, folder *dagger.Directory) (string, error) {
	text, err := folder.File("image.json").Contents(ctx)
	if err != nil {
		return "", err
	}
	var image struct{ Repository string }
	err = json.Unmarshal([]byte(text), &image)
	return image.Repository, err
}
