package main

import (
	"context"
	"errors"
	"strings"

	"dagger/castle/internal/dagger"
)

// Create brings a cluster from nothing to a reconciled one, or goes on where an
// earlier call ended: what is there and as described is left alone.
//
// The layers are secrets, platform (VMs and Talos), engine (External Secrets
// Operator), networking (MetalLB), storage (Longhorn) and gitops (Flux). What
// does not depend on each other runs in parallel, and each layer's readiness is
// seen, not slept for, before anything is built on it.
//
// `--cluster sandbox` needs nothing but an engine: the same layers against a
// real Kubernetes API and simulated machines.
//
// +cache="never"
func (m *Castle) Create(
	ctx context.Context,
	// The cluster: a folder with a cluster.yaml in the clusters' folder.
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
	// How much of a homelab's time the sandbox takes: 1 is real time, 0 none.
	// +default="0.05"
	timeScale string,
	// What goes wrong in the sandbox, such as webhook-late=20s; several times.
	// +optional
	fault []string,
	// A node, by name, whose VM may be removed or replaced with its disks, where
	// cluster.yaml says so; several times.
	// +optional
	allowReplace []string,
	// A layer, by name, that cluster.yaml does without by now (storage: none,
	// loadBalancer: none) and that may be removed; several times.
	// +optional
	removeLayer []string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, fault).Create(ctx, allowReplace, removeLayer, format)
}

// Validate lists every mistake of a cluster's description at once, a line each
// with the fix, or of all clusters' where none is named. Nothing else runs on
// one that has any.
//
// +check
func (m *Castle) Validate(
	ctx context.Context,
	// The cluster. Default: all of them.
	// +optional
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
) (_ string, err error) {
	defer ended("validate", FormatText, &err)
	found, err := m.clustersOf(ctx, repository)
	switch {
	case errors.Is(err, errNoClusters) && cluster == "":
		return "there are no clusters here\n", nil // `dagger check` asks in every repository
	case err != nil:
		return "", err
	}
	names := []string{cluster}
	if cluster == "" {
		names = found.names
	}
	var said strings.Builder
	var mistakes []error
	for _, name := range names {
		text, err := m.Cluster(name, repository, nil, "", nil).tell(ctx, "validate")
		mistakes = append(mistakes, err)
		said.WriteString(text)
	}
	return said.String(), errors.Join(mistakes...)
}

// Plan shows what create would change, layer by layer, and changes nothing.
//
// +cache="never"
func (m *Castle) Plan(
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
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).Plan(ctx, format)
}

// Status shows a cluster's layers, nodes and gates as they are now.
//
// +cache="never"
func (m *Castle) Status(
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
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).Status(ctx, format)
}

// Outputs shows a cluster's endpoints, and how to get its kubeconfig.
func (m *Castle) Outputs(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return m.Cluster(cluster, repository, nil, "", nil).Outputs(ctx, format)
}

// Kubeconfig is an administrator's kubeconfig, asked from the control plane:
// `dagger call kubeconfig --cluster blue plaintext > kubeconfig`.
//
// It is a secret, so that it stands in no cache and no log.
//
// +cache="never"
func (m *Castle) Kubeconfig(
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
) (*dagger.Secret, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).Kubeconfig(ctx)
}

// Talosconfig is an administrator's configuration for talosctl:
// `dagger call talosconfig --cluster blue plaintext > talosconfig`.
//
// +cache="never"
func (m *Castle) Talosconfig(
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
) (*dagger.Secret, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).Talosconfig(ctx)
}

// Timeline is the last run's time line, as timeline.html, timeline.md and
// timeline.json, with its events and the tools' full output:
// `dagger call timeline --cluster blue export --path timeline`.
//
// +cache="never"
func (m *Castle) Timeline(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
) (*dagger.Directory, error) {
	return m.Cluster(cluster, repository, nil, "", nil).Timeline(ctx)
}

// Destroy removes a cluster, layer by layer in reverse order, and makes sure
// that every state is empty and every VM gone. Machines that castle did not make
// (platform talos) wipe what they hold of it, and wait in maintenance mode.
//
// +cache="never"
func (m *Castle) Destroy(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The cluster's name once more: all that is stored in it is lost.
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
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).Destroy(ctx, confirm, format)
}
