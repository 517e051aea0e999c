package main

import (
	"context"
	"path"
	"slices"
	"strings"

	"dagger/castle/internal/dagger"
)

// madeFor is the engine that castle is made for: that of dagger.json.
const madeFor = "v0.19.10"

// Doctor looks whether a cluster can be created, and what is wrong with what it
// stands on: the engine and its disk, programs, secrets, Proxmox's certificate,
// token and privileges, hosts, storage, template, VM ids, addresses, names,
// clocks, the GitOps repository, the registries of castle.yaml's images, the
// store of the states. All rows are looked at at the same time, each that is not
// well says what to type or do, and nothing is changed.
//
// A row that has failed fails the call; a warning does not.
//
// +cache="never"
func (m *Castle) Doctor(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// The age key that decrypts the cluster's SOPS file (env:SOPS_AGE_KEY,
	// file:PATH). Default: for a sandbox its own.
	// +optional
	ageKey *dagger.Secret,
	// The token that publish-blog pushes to the GitOps repository with. Without it
	// the cluster's own, which needs to read only, is tried.
	// +optional
	gitToken *dagger.Secret,
	// The password or token that publish-blog pushes images with. Without it the
	// registries are only asked whether they answer.
	// +optional
	registryPassword *dagger.Secret,
	// How much of a homelab's time the sandbox takes.
	// +default="0.05"
	timeScale string,
	// What is wrong in the sandbox, such as privilege-missing=VM.Clone; several
	// times.
	// +optional
	fault []string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, fault).Doctor(ctx, gitToken, registryPassword, format)
}

// Doctor looks whether the cluster can be created, and what is wrong with what
// it stands on.
//
// +cache="never"
func (c *Cluster) Doctor(
	ctx context.Context,
	// The token that publish-blog pushes to the GitOps repository with. Without it
	// the cluster's own, which needs to read only, is tried.
	// +optional
	gitToken *dagger.Secret,
	// The password or token that publish-blog pushes images with. Without it the
	// registries are only asked whether they answer.
	// +optional
	registryPassword *dagger.Secret,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (_ string, err error) {
	defer ended("doctor", format, &err)
	d, err := c.describe(ctx)
	if err != nil {
		return "", err
	}
	world, err := d.ownWorld(ctx)
	if err != nil {
		return "", err
	}
	if gitToken == nil && world != nil {
		gitToken = dag.SetSecret("castle-"+d.name+"-git-token", world.Git.Token)
	}
	engine, err := dag.Version(ctx)
	if err != nil {
		return "", err
	}
	named, err := c.Castle.namedFolders(ctx, c.Repository)
	if err != nil {
		return "", err
	}
	container, err := d.container(ctx)
	if err != nil {
		return "", err
	}
	container, _ = gitAccess{token: gitToken}.attach(container)
	if registryPassword != nil {
		container = container.WithSecretVariable("CASTLE_REGISTRY_PASSWORD", registryPassword)
	}
	args := append([]string{"doctor", "--format=" + string(format), "--engine=" + engine, "--made-for=" + madeFor}, named.registries(world)...)
	text, err := container.WithExec(d.args(args...)).Stdout(ctx)
	return text, plain(err)
}

// registries are the flags that tell where castle.yaml's sites are published to;
// for a sandbox that is its own registry.
func (n *named) registries(own *world) []string {
	flags := []string{"--registry-username=" + n.Registry.Username}
	var images []string
	for _, site := range n.Sites {
		image := site.Image
		if own != nil && image != "" && hostOfImage(image) != own.Registry {
			host, rest, _ := strings.Cut(image, "/")
			host, _, _ = strings.Cut(host, ":") // as castle-publish settings: only a name's first part may have a port
			image = path.Join(own.Registry, host, rest)
		}
		if image != "" && !slices.Contains(images, image) {
			images = append(images, image)
		}
	}
	slices.Sort(images)
	for _, image := range images {
		flags = append(flags, "--image="+image)
	}
	if own != nil {
		flags = append(flags, "--plain-http="+own.Registry)
	}
	return flags
}
