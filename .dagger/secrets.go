package main

import (
	"context"

	"dagger/castle/internal/dagger"
)

// SecretsInit makes the PKI of a cluster whose secrets come from SOPS files
// alone (infisical: none), as the SOPS file that cluster.yaml names and that is
// not there yet. Export it into the cluster's folder and commit it:
// `dagger call secrets-init --cluster blue --age-key env:SOPS_AGE_KEY export --path clusters/blue`.
//
// +cache="never"
func (m *Castle) SecretsInit(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// The age key that decrypts the cluster's SOPS files.
	// +optional
	ageKey *dagger.Secret,
) (*dagger.Directory, error) {
	return m.Cluster(cluster, repository, ageKey, "", nil).SecretsInit(ctx)
}

// SecretsCheck names every secret that is missing or unfit, in whichever source,
// all at once and without a value. Nothing is changed.
//
// +cache="never"
func (m *Castle) SecretsCheck(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// The age key that decrypts the cluster's SOPS files.
	// +optional
	ageKey *dagger.Secret,
	// How much of a homelab's time the sandbox takes.
	// +default="0.05"
	timeScale string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).SecretsCheck(ctx, format)
}

// SecretsList shows which secrets there are and where, without their values.
//
// +cache="never"
func (m *Castle) SecretsList(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// The age key that decrypts the cluster's SOPS files.
	// +optional
	ageKey *dagger.Secret,
	// How much of a homelab's time the sandbox takes.
	// +default="0.05"
	timeScale string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return m.Cluster(cluster, repository, ageKey, timeScale, nil).SecretsList(ctx, format)
}

// SecretsAgeKey makes an age key, such as secrets-rotate-age takes:
// `dagger call secrets-age-key plaintext > new.agekey`.
//
// It is a secret, so that it stands in no cache and no log.
//
// +cache="never"
func (m *Castle) SecretsAgeKey(
	ctx context.Context,
) (*dagger.Secret, error) {
	container, err := m.container(clusterProgram)
	if err != nil {
		return nil, err
	}
	return unsealed(ctx, uncached(container), "age-key", []string{clusterProgram, "secrets-age-key"})
}

// SecretsRotateAge encrypts every SOPS file of the cluster's folder for another
// age key. All are encrypted and opened with the new key before any is given
// back; export them into the cluster's folder and commit them:
// `dagger call secrets-rotate-age --cluster blue --age-key file:old.agekey --new-age-key file:new.agekey export --path clusters/blue`.
//
// Files that have the new key already are left alone, so the same call goes on
// where an export was interrupted.
//
// +cache="never"
func (m *Castle) SecretsRotateAge(
	ctx context.Context,
	// The cluster.
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// The age key that decrypts the cluster's SOPS files now.
	// +optional
	ageKey *dagger.Secret,
	// The new age key, such as secrets-age-key makes.
	// +optional
	newAgeKey *dagger.Secret,
	// The new key's public part, age1…, where the key itself is elsewhere.
	// +optional
	newRecipient string,
) (*dagger.Directory, error) {
	return m.Cluster(cluster, repository, ageKey, "", nil).SecretsRotateAge(ctx, newAgeKey, newRecipient)
}

// SecretsInit makes the PKI of a cluster whose secrets come from SOPS files
// alone, as the file that cluster.yaml names and that is not there yet.
//
// +cache="never"
func (c *Cluster) SecretsInit(
	ctx context.Context,
) (*dagger.Directory, error) {
	return c.files(ctx, nil, "secrets-init")
}

// SecretsCheck names every secret that is missing or unfit, all at once.
//
// +cache="never"
func (c *Cluster) SecretsCheck(
	ctx context.Context,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return c.run(ctx, format, "secrets-check")
}

// SecretsList shows which secrets there are and where, without their values.
//
// +cache="never"
func (c *Cluster) SecretsList(
	ctx context.Context,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return c.run(ctx, format, "secrets-list")
}

// SecretsRotateAge encrypts every SOPS file of the cluster's folder for another
// age key.
//
// +cache="never"
func (c *Cluster) SecretsRotateAge(
	ctx context.Context,
	// The new age key, such as secrets-age-key makes.
	// +optional
	newAgeKey *dagger.Secret,
	// The new key's public part, age1…, where the key itself is elsewhere.
	// +optional
	newRecipient string,
) (*dagger.Directory, error) {
	return c.files(ctx, newAgeKey, "secrets-rotate-age", "--new-recipient="+newRecipient)
}

// files runs a command of castle-cluster that writes SOPS files; newKey may be
// nil.
func (c *Cluster) files(ctx context.Context, newKey *dagger.Secret, args ...string) (_ *dagger.Directory, err error) {
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
	container = uncached(container).WithSecretVariable("SOPS_AGE_KEY", d.ageKey)
	if newKey != nil {
		container = container.WithSecretVariable("SOPS_NEW_AGE_KEY", newKey)
	}
	folder, err := container.
		WithExec(append(append([]string{clusterProgram}, args...), "--folder="+d.folder, "--out="+made)).
		Directory(made).
		Sync(ctx)
	return folder, plain(err)
}
