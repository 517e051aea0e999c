package main

import (
	"context"

	"dagger/castle/internal/dagger"
)

// StateList shows the layers' states, their copies, and who holds a lock.
//
// +cache="never"
func (m *Castle) StateList(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The folder with the layers and the clusters, or a repository that holds it.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	terragrunt *dagger.Directory,
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
	return m.Cluster(cluster, terragrunt, ageKey, timeScale, nil).StateList(ctx, format)
}

// StateUnlock removes a lock in the store of the states whose holder is dead. A
// run that was killed here needs none of this: the next one frees what it held.
//
// +cache="never"
func (m *Castle) StateUnlock(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The lock's ID, as the refused call or state-list tells it: whoever holds it
	// must not run any more.
	confirm string,
	// The folder with the layers and the clusters, or a repository that holds it.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	terragrunt *dagger.Directory,
	// The age key that decrypts the cluster's SOPS file.
	// +optional
	ageKey *dagger.Secret,
	// How much of a homelab's time the sandbox takes.
	// +default="0.05"
	timeScale string,
) (string, error) {
	return m.Cluster(cluster, terragrunt, ageKey, timeScale, nil).StateUnlock(ctx, confirm)
}

// StateRestore goes back to a copy of a layer's state, which becomes a copy
// itself. Machines that are there and in no state are taken up by the next
// create.
//
// +cache="never"
func (m *Castle) StateRestore(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The layer, such as platform.
	layer string,
	// The copy, by its time as state-list shows it.
	copyTime string,
	// The cluster's name once more: what the state knows since then, it forgets.
	confirm string,
	// The folder with the layers and the clusters, or a repository that holds it.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	terragrunt *dagger.Directory,
	// The age key that decrypts the cluster's SOPS file.
	// +optional
	ageKey *dagger.Secret,
	// How much of a homelab's time the sandbox takes.
	// +default="0.05"
	timeScale string,
) (string, error) {
	return m.Cluster(cluster, terragrunt, ageKey, timeScale, nil).StateRestore(ctx, layer, copyTime, confirm)
}

// StateList shows the layers' states, their copies, and who holds a lock.
//
// +cache="never"
func (c *Cluster) StateList(
	ctx context.Context,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return c.run(ctx, format, "state-list")
}

// StateUnlock removes a lock in the store of the states whose holder is dead.
//
// +cache="never"
func (c *Cluster) StateUnlock(
	ctx context.Context,
	// The lock's ID, as the refused call or state-list tells it: whoever holds it
	// must not run any more.
	confirm string,
) (string, error) {
	return c.keep(ctx, "state-unlock", "--confirm="+confirm)
}

// StateRestore goes back to a copy of a layer's state, which becomes a copy
// itself.
//
// +cache="never"
func (c *Cluster) StateRestore(
	ctx context.Context,
	// The layer, such as platform.
	layer string,
	// The copy, by its time as state-list shows it.
	copyTime string,
	// The cluster's name once more: what the state knows since then, it forgets.
	confirm string,
) (string, error) {
	return c.keep(ctx, "state-restore", "--layer="+layer, "--copy-time="+copyTime, "--confirm="+confirm)
}

// keep runs a command of castle-cluster that changes the states alone.
func (c *Cluster) keep(ctx context.Context, verb string, args ...string) (_ string, err error) {
	defer ended(verb, FormatText, &err)
	d, err := c.describe(ctx)
	if err != nil {
		return "", err
	}
	return d.command(ctx, append([]string{verb}, args...)...)
}
