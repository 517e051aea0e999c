package main

import (
	"context"
	"fmt"

	"dagger/castle/internal/dagger"
)

// NuclearWipe lists the VMs of a cluster or, with --confirm, removes them, by
// Proxmox's API alone: no state is read, no layer is run, and neither Infisical
// nor the cluster is asked. A VM is the cluster's by its id and its tag together.
// Of machines that castle did not make (platform talos) there is none.
//
// +cache="never"
func (m *Castle) NuclearWipe(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The cluster's name once more: all that is stored in it is lost. Without it
	// nothing is removed.
	// +optional
	confirm string,
	// The id of a VM in the cluster's range that goes although it has not the
	// cluster's tag, such as a clone that was never finished; several times.
	// +optional
	includeUntagged []int,
	// The id of the states' owner, as a refused call shows it: where the
	// cluster's SOPS file cannot prove any more that they are this cluster's.
	// +optional
	owner string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// The age key that decrypts the cluster's SOPS file.
	// +optional
	ageKey *dagger.Secret,
	// How much of a homelab's time the sandbox takes.
	// +default="0.05"
	timeScale string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).NuclearWipe(ctx, confirm, includeUntagged, owner, format)
}

// NuclearWipe lists the cluster's VMs or, with --confirm, removes them, by
// Proxmox's API alone.
//
// +cache="never"
func (c *Cluster) NuclearWipe(
	ctx context.Context,
	// The cluster's name once more: all that is stored in it is lost. Without it
	// nothing is removed.
	// +optional
	confirm string,
	// The id of a VM in the cluster's range that goes although it has not the
	// cluster's tag; several times.
	// +optional
	includeUntagged []int,
	// The id of the states' owner, as a refused call shows it.
	// +optional
	owner string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	flags := []string{"--confirm=" + confirm, "--owner=" + owner}
	for _, id := range includeUntagged {
		flags = append(flags, fmt.Sprintf("--include-untagged=%d", id))
	}
	return c.run(ctx, format, "nuclear-wipe", flags...)
}
