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
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).StateList(ctx, format)
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
) (string, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).StateUnlock(ctx, confirm)
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
) (string, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).StateRestore(ctx, layer, copyTime, confirm)
}

// StateShow shows what a layer's state holds: resources with their ids, without
// any other value.
//
// +cache="never"
func (m *Castle) StateShow(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The layer, such as platform.
	layer string,
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
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).StateShow(ctx, layer, format)
}

// StateExport is an archive of all states, which the cluster's age key opens.
//
// +cache="never"
func (m *Castle) StateExport(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The public key (age1…) of somebody else who may open it; several times.
	// +optional
	recipient []string,
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
) (*dagger.File, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).StateExport(ctx, recipient)
}

// StateImport takes in the states of an archive that state-export made of this
// cluster.
//
// +cache="never"
func (m *Castle) StateImport(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The archive.
	archive *dagger.File,
	// The cluster's name once more.
	confirm string,
	// Replace states that differ; they become copies.
	// +optional
	replace bool,
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
) (string, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).StateImport(ctx, archive, confirm, replace)
}

// StateMigrate moves the states to where cluster.yaml has them now. They are in
// the old place until both were read and compared, and stay there as copies.
//
// +cache="never"
func (m *Castle) StateMigrate(
	ctx context.Context,
	// The cluster.
	cluster string,
	// Where they are: local, or s3://BUCKET?endpoint=URL&region=NAME.
	from string,
	// The cluster's name once more.
	confirm string,
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
) (string, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).StateMigrate(ctx, from, confirm)
}
