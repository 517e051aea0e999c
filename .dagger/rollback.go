package main

import (
	"context"
	"fmt"
	"slices"

	"dagger/castle/internal/dagger"
)

// RollbackBlog points the GitOps manifest at an image that was published
// before, after making sure that the registry still has it unchanged. Nothing
// is built. `dagger call history` lists what there is.
//
// With --wait, Flux is asked to look at once, and the call ends when the
// cluster's Deployment is available with the earlier image:
// `dagger call rollback-blog --to 1a2b3c4 --wait --cluster blue`.
//
// +cache="never"
func (m *Castle) RollbackBlog(
	ctx context.Context,
	// The commit of the blog to go back to, 4 digits or more.
	to string,
	// The image's repository.
	// +default="tazzo/tazlab.net"
	image string,
	// The user name for the registry.
	// +optional
	registryUsername string,
	// The password or token for the registry (env:NAME, file:PATH, op://…).
	// +optional
	registryPassword *dagger.Secret,
	// The GitOps repository, by https, ssh or http.
	// +default="https://github.com/tazzo/tazlab-k8s.git"
	gitopsUrl string,
	// The branch that Flux follows.
	// +default="main"
	gitopsBranch string,
	// The manifest's path in the GitOps repository.
	// +default="apps/base/hugo-blog/hugo-blog.yaml"
	manifestPath string,
	// The container whose image is meant, where several use the same one.
	// +optional
	container string,
	// The resource that is meant (Kind/name), where several use the same image.
	// +optional
	resource string,
	// The token for the GitOps repository over https.
	// +optional
	gitToken *dagger.Secret,
	// The SSH agent's socket, for a GitOps repository over ssh
	// (--ssh-agent "$SSH_AUTH_SOCK").
	// +optional
	sshAgent *dagger.Socket,
	// The known_hosts file for ssh. Default: a new host's key is accepted.
	// +optional
	knownHosts *dagger.File,
	// Push the manifest's change to this branch instead, ready for a pull
	// request.
	// +optional
	pushBranch string,
	// Write the digest beside the tag.
	// +optional
	pinDigest bool,
	// The author of the GitOps commit.
	// +default="castle"
	authorName string,
	// The author's address.
	// +default="castle@tazlab.net"
	authorEmail string,
	// An SSH private key to sign the GitOps commit with.
	// +optional
	signingKey *dagger.Secret,
	// The registry as a service, where only this machine reaches it
	// (tcp://localhost:5000).
	// +optional
	registryService *dagger.Service,
	// The GitOps remote as a service, where only this machine reaches it.
	// +optional
	gitopsService *dagger.Service,
	// Compare, but push nothing.
	// +optional
	dryRun bool,
	// Wait until the cluster runs the earlier image.
	// +optional
	wait bool,
	// How long to wait, such as 90s.
	// +default="10m"
	waitTimeout string,
	// The cluster that rolls the blog out: a folder in live of the terragrunt
	// folder. Its GitOps repository is the default of --gitops-url; for a
	// sandbox, its own registry and token are defaults, too.
	// +optional
	cluster string,
	// The folder with the layers and the clusters.
	// +defaultPath="/terragrunt"
	terragrunt *dagger.Directory,
	// The age key that decrypts the cluster's SOPS file, for --wait. Default:
	// for a sandbox its own.
	// +optional
	ageKey *dagger.Secret,
	// For --wait on a cluster without a description: a kubeconfig's text
	// (env:NAME, file:PATH) with all credentials in it.
	// +optional
	kubeconfig *dagger.Secret,
	// The blog's Deployment.
	// +default="blog/hugo-blog"
	deployment string,
	// The GitRepository that Flux fetches.
	// +default="flux-system/flux-system"
	fluxSource string,
	// The Kustomization that is asked first to apply it.
	// +default="flux-system/flux-system"
	fluxKustomization string,
	// How much of a homelab's time the sandbox takes.
	// +default="0.05"
	timeScale string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	rollout := rolloutWait{
		castle: m, wait: wait, timeout: waitTimeout, cluster: cluster, kubeconfig: kubeconfig,
		deployment: deployment, source: fluxSource, kustomization: fluxKustomization,
	}
	commit := gitCommit{
		pushBranch: pushBranch, pinDigest: pinDigest, dryRun: dryRun,
		authorName: authorName, authorEmail: authorEmail, signingKey: signingKey,
	}
	if err := rollout.check(commit); err != nil {
		return "", err
	}
	goal, err := rollout.describe(ctx, terragrunt, ageKey, timeScale, goal{image: image, url: gitopsUrl, branch: gitopsBranch, token: gitToken})
	if err != nil {
		return "", err
	}
	enter, rolloutFlags, err := rollout.attach(ctx)
	if err != nil {
		return "", err
	}
	command := slices.Concat([]string{"rollback", "--to=" + to, fmt.Sprintf("--wait=%t", wait)}, goal.flags(), rolloutFlags)
	return m.onManifest(ctx, command, manifest{
		url: goal.url, branch: goal.branch, path: manifestPath,
		image: goal.image, container: container, resource: resource,
		access:  gitAccess{token: goal.token, sshAgent: sshAgent, knownHosts: knownHosts},
		service: gitopsService,
	}, registry{
		image: goal.image, username: registryUsername, password: registryPassword, service: registryService,
	}, commit, format, enter)
}

// History lists what was published when, newest first, as the GitOps
// repository knows it. Changes made by hand are in it.
//
// +cache="never"
func (m *Castle) History(
	ctx context.Context,
	// The image's repository.
	// +default="tazzo/tazlab.net"
	image string,
	// The GitOps repository, by https, ssh or http.
	// +default="https://github.com/tazzo/tazlab-k8s.git"
	gitopsUrl string,
	// The branch that Flux follows.
	// +default="main"
	gitopsBranch string,
	// The manifest's path in the GitOps repository.
	// +default="apps/base/hugo-blog/hugo-blog.yaml"
	manifestPath string,
	// The container whose image is meant, where several use the same one.
	// +optional
	container string,
	// The resource that is meant (Kind/name), where several use the same image.
	// +optional
	resource string,
	// The token for the GitOps repository over https.
	// +optional
	gitToken *dagger.Secret,
	// The SSH agent's socket, for a GitOps repository over ssh
	// (--ssh-agent "$SSH_AUTH_SOCK").
	// +optional
	sshAgent *dagger.Socket,
	// The known_hosts file for ssh. Default: a new host's key is accepted.
	// +optional
	knownHosts *dagger.File,
	// The GitOps remote as a service, where only this machine reaches it.
	// +optional
	gitopsService *dagger.Service,
	// How many entries, newest first; 0 means all.
	// +default=20
	limit int,
	// The cluster whose GitOps repository is read: a folder in live of the
	// terragrunt folder.
	// +optional
	cluster string,
	// The folder with the layers and the clusters.
	// +defaultPath="/terragrunt"
	terragrunt *dagger.Directory,
	// The age key of a sandbox that does not bring its own.
	// +optional
	ageKey *dagger.Secret,
	// How much of a homelab's time the sandbox takes.
	// +default="0.05"
	timeScale string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	rollout := rolloutWait{castle: m, cluster: cluster}
	goal, err := rollout.describe(ctx, terragrunt, ageKey, timeScale, goal{image: image, url: gitopsUrl, branch: gitopsBranch, token: gitToken})
	if err != nil {
		return "", err
	}
	enter, _, err := rollout.attach(ctx)
	if err != nil {
		return "", err
	}
	return m.onManifest(ctx, []string{"history", fmt.Sprintf("--limit=%d", limit)}, manifest{
		url: goal.url, branch: goal.branch, path: manifestPath,
		image: goal.image, container: container, resource: resource,
		access:  gitAccess{token: goal.token, sshAgent: sshAgent, knownHosts: knownHosts},
		service: gitopsService,
	}, registry{image: goal.image}, gitCommit{}, format, enter)
}

// onManifest runs one of castle's commands on a manifest.
func (m *Castle) onManifest(ctx context.Context, command []string, manifest manifest, registry registry, commit gitCommit, format Format, mounts ...dagger.WithContainerFunc) (string, error) {
	container, err := m.container(publishProgram)
	if err != nil {
		return "", err
	}
	for _, mount := range mounts {
		container = container.With(mount)
	}
	args := append([]string{publishProgram}, command...)
	for _, attach := range []func(*dagger.Container) (*dagger.Container, []string, error){manifest.attach, registry.attach, commit.attach} {
		attached, flags, err := attach(container)
		if err != nil {
			return "", err
		}
		container, args = attached, append(args, flags...)
	}
	text, err := uncached(container).WithExec(append(args, "--format="+string(format))).Stdout(ctx)
	return text, plain(err)
}
