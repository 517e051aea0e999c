package main

import (
	"context"

	"dagger/castle/internal/dagger"
)

// SecretsInit makes the PKI of a cluster whose secrets come from SOPS files
// alone (infisical: none), as the SOPS file that cluster.yaml names and that is
// not there yet. Export it into the cluster's folder and commit it:
// `dagger call secrets-init --cluster blue --age-key env:SOPS_AGE_KEY export --path terragrunt/live/blue`.
//
// +cache="never"
func (m *Castle) SecretsInit(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The folder with the layers and the clusters, or a repository that holds it.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	terragrunt *dagger.Directory,
	// The age key that decrypts the cluster's SOPS files.
	// +optional
	ageKey *dagger.Secret,
) (*dagger.Directory, error) {
	return m.Cluster(cluster, terragrunt, ageKey, "", nil).SecretsInit(ctx)
}

// SecretsInit makes the PKI of a cluster whose secrets come from SOPS files
// alone, as the file that cluster.yaml names and that is not there yet.
//
// +cache="never"
func (c *Cluster) SecretsInit(
	ctx context.Context,
) (*dagger.Directory, error) {
	return c.files(ctx, "secrets-init")
}

// files runs a command of castle-cluster that writes SOPS files.
func (c *Cluster) files(ctx context.Context, args ...string) (_ *dagger.Directory, err error) {
	defer ended(args[0], FormatText, &err)
	d, err := c.describe(ctx)
	if err != nil {
		return nil, err
	}
	if d.ageKey == nil {
		return nil, d.keyMissing()
	}
	container, err := d.plain()
	if err != nil {
		return nil, err
	}
	folder, err := uncached(container).
		WithSecretVariable("SOPS_AGE_KEY", d.ageKey).
		WithExec(append(append([]string{clusterProgram}, args...), "--folder="+d.folder(), "--out="+made)).
		Directory(made).
		Sync(ctx)
	return folder, plain(err)
}
