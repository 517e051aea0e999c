package main

import (
	"context"

	"dagger/castle/internal/dagger"
)

// RemoveNode makes a node leave: its pods go elsewhere as their budgets allow,
// its etcd member is taken out, its machine wipes itself, and its VM is removed
// with its disks. A machine that castle did not make (platform talos) waits in
// maintenance mode then. cluster.yaml does not list it any more. What speaks against it
// is told before anything is changed, and a call that was interrupted is gone on
// with by the same call.
//
// +cache="never"
func (m *Castle) RemoveNode(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The node, by name.
	node string,
	// The node's name once more: all that is stored on it alone is lost.
	confirm string,
	// How long its pods may take to go.
	// +default="10m"
	drainTimeout string,
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
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).RemoveNode(ctx, node, confirm, drainTimeout, format)
}

// RemoveNode makes a node leave that cluster.yaml does not list any more.
//
// +cache="never"
func (c *Cluster) RemoveNode(
	ctx context.Context,
	// The node, by name.
	node string,
	// The node's name once more: all that is stored on it alone is lost.
	confirm string,
	// How long its pods may take to go.
	// +default="10m"
	drainTimeout string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return c.run(ctx, format, "remove-node", "--node="+node, "--confirm="+confirm, "--drain-timeout="+drainTimeout)
}
