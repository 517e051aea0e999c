package main

import (
	"context"
	"fmt"

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
	// The commit of the blog to go back to, 4 digits or more: its newest image;
	// 1a2b3c4-r2 is one of its rebuilds, -r1 its first image. Or a whole tag.
	to string,
	// The repository whose castle.yaml names what follows.
	// +defaultPath="/"
	// +ignore=["*", "!castle.yaml"]
	source *dagger.Directory,
	// The site's name in castle.yaml. Default: the only one.
	// +optional
	site string,
	// The image's repository.
	// +optional
	image string,
	// The user name for the registry.
	// +optional
	registryUsername string,
	// The password or token for the registry (env:NAME, file:PATH, op://…).
	// +optional
	registryPassword *dagger.Secret,
	// The GitOps repository, by https or ssh; a token goes over http to this
	// machine and to --gitops-service only.
	// +optional
	gitopsUrl string,
	// The branch that Flux follows.
	// +optional
	gitopsBranch string,
	// The manifest's path in the GitOps repository.
	// +optional
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
	// The known_hosts file for ssh. Default: knownHosts of castle.yaml.
	// +optional
	knownHosts *dagger.File,
	// Push the manifest's change to this branch instead, ready for a pull
	// request.
	// +optional
	pushBranch string,
	// Open a pull request on GitHub for the change instead of pushing it to the
	// branch that Flux follows, or go on with the one that is open. Its branch is
	// --push-branch, else one of castle's own. With --wait, its merge is waited
	// for, and then the rollout. The --git-token needs contents and pull requests,
	// read and write.
	// +optional
	pullRequest bool,
	// The address of GitHub's API, where the GitOps repository is not on
	// github.com (https://github.example.org/api/v3/).
	// +optional
	githubApi string,
	// How long --wait waits for the merge of the pull request, such as 2h.
	// +default="30m"
	mergeTimeout string,
	// Write the digest beside the tag.
	// +optional
	pinDigest bool,
	// The author of the GitOps commit.
	// +optional
	authorName string,
	// The author's address.
	// +optional
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
	// The cluster that rolls the blog out: a folder of the clusters'
	// folder. Its GitOps repository goes before that of castle.yaml; for a
	// sandbox, its own registry and token do, too.
	// +optional
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in. Left out
	// of it: Go files, and folders named testdata, content, themes, static or
	// assets, which belong to sites.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig", "**/*.go", "**/testdata", "**/content", "**/themes", "**/static", "**/assets"]
	repository *dagger.Directory,
	// The age key that decrypts the cluster's SOPS file, for --wait. Default:
	// for a sandbox its own.
	// +optional
	ageKey *dagger.Secret,
	// For --wait on a cluster without a description: a kubeconfig's text
	// (env:NAME, file:PATH) with all credentials in it.
	// +optional
	kubeconfig *dagger.Secret,
	// The Deployment to wait for (namespace/name). Default: the resource that
	// the manifest names, else the Deployment that runs the image.
	// +optional
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
	// How long a step that fails is tried again, from its first failure on, at
	// the registry and at a branch that others push to, such as 10m.
	// +default="4m"
	retryFor string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return m.
		Site(source, site, "", "", image, "", nil, 0, "", "", registryUsername, registryPassword, registryService,
			gitopsUrl, gitopsBranch, manifestPath, container, resource, deployment, pinDigest, authorName, authorEmail, signingKey,
			gitToken, sshAgent, knownHosts, nil, gitopsService).
		Rollback(ctx, to, m.optionalCluster(cluster, repository, ageKey, timeScale), kubeconfig, wait, waitTimeout, fluxSource, fluxKustomization,
			dryRun, pushBranch, pullRequest, githubApi, mergeTimeout, retryFor, format)
}

// Rollback points the GitOps manifest at an image that was published before, as
// rollback-blog does.
//
// +cache="never"
func (s *Site) Rollback(
	ctx context.Context,
	// The commit of the source to go back to, 4 digits or more, one of its
	// rebuilds (1a2b3c4-r2), or a whole tag.
	to string,
	// The cluster that rolls it out.
	// +optional
	cluster *Cluster,
	// For waiting on a cluster without a description: a kubeconfig's text.
	// +optional
	kubeconfig *dagger.Secret,
	// Wait until the cluster runs the earlier image.
	// +optional
	wait bool,
	// How long to wait, such as 90s.
	// +default="10m"
	waitTimeout string,
	// The GitRepository that Flux fetches.
	// +default="flux-system/flux-system"
	fluxSource string,
	// The Kustomization that is asked first to apply it.
	// +default="flux-system/flux-system"
	fluxKustomization string,
	// Compare, but push nothing.
	// +optional
	dryRun bool,
	// Push the manifest's change to this branch instead.
	// +optional
	pushBranch string,
	// Open a pull request for the change.
	// +optional
	pullRequest bool,
	// The address of GitHub's API, where it is not github.com's.
	// +optional
	githubApi string,
	// How long --wait waits for the merge.
	// +default="30m"
	mergeTimeout string,
	// How long a step that fails is tried again, such as 10m.
	// +default="4m"
	retryFor string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (_ string, err error) {
	defer ended("rollback", format, &err)
	if err := checkRetryFor(retryFor); err != nil {
		return "", err
	}
	r := rollout{
		castle: s.Castle, wait: wait, timeout: waitTimeout, cluster: cluster, kubeconfig: kubeconfig,
		source: fluxSource, kustomization: fluxKustomization,
	}
	if err := r.check(dryRun); err != nil {
		return "", err
	}
	s = s.proposing(pullRequest, githubApi)
	if err := r.describe(ctx); err != nil {
		return "", err
	}
	g, err := s.goal(ctx, forManifest, r.described)
	if err != nil {
		return "", err
	}
	commit, err := r.proposed(s.commit(g.settings, pushBranch, dryRun), mergeTimeout)
	if err != nil {
		return "", err
	}
	r.deployment = g.Deployment
	if err := r.reach(ctx); err != nil {
		return "", err
	}
	registry := s.registry(g.settings)
	registry.retryFor = retryFor
	return s.onManifest(ctx, g, append([]string{"rollback", "--to=" + to}, g.flags()...), &r, registry, commit, format)
}

// History lists what was published when, newest first, as the GitOps
// repository knows it. Changes made by hand are in it.
//
// +cache="never"
func (m *Castle) History(
	ctx context.Context,
	// The repository whose castle.yaml names what follows.
	// +defaultPath="/"
	// +ignore=["*", "!castle.yaml"]
	source *dagger.Directory,
	// The site's name in castle.yaml. Default: the only one.
	// +optional
	site string,
	// The image's repository.
	// +optional
	image string,
	// The GitOps repository, by https or ssh; a token goes over http to this
	// machine and to --gitops-service only.
	// +optional
	gitopsUrl string,
	// The branch that Flux follows.
	// +optional
	gitopsBranch string,
	// The manifest's path in the GitOps repository.
	// +optional
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
	// The known_hosts file for ssh. Default: knownHosts of castle.yaml.
	// +optional
	knownHosts *dagger.File,
	// The GitOps remote as a service, where only this machine reaches it.
	// +optional
	gitopsService *dagger.Service,
	// How many entries, newest first; 0 means all.
	// +default=20
	limit int,
	// The cluster whose GitOps repository is read: a folder of the
	// clusters' folder.
	// +optional
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in. Left out
	// of it: Go files, and folders named testdata, content, themes, static or
	// assets, which belong to sites.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig", "**/*.go", "**/testdata", "**/content", "**/themes", "**/static", "**/assets"]
	repository *dagger.Directory,
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
	return m.
		Site(source, site, "", "", image, "", nil, 0, "", "", "", nil, nil, gitopsUrl, gitopsBranch, manifestPath, container, resource, "", false, "", "", nil,
			gitToken, sshAgent, knownHosts, nil, gitopsService).
		History(ctx, m.optionalCluster(cluster, repository, ageKey, timeScale), limit, format)
}

// History lists what was published of the site when, newest first, as the
// GitOps repository knows it.
//
// +cache="never"
func (s *Site) History(
	ctx context.Context,
	// The cluster whose GitOps repository is read.
	// +optional
	cluster *Cluster,
	// How many entries, newest first; 0 means all.
	// +default=20
	limit int,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (_ string, err error) {
	defer ended("history", format, &err)
	r := rollout{castle: s.Castle, cluster: cluster}
	if err := r.describe(ctx); err != nil {
		return "", err
	}
	g, err := s.goal(ctx, forManifest, r.described)
	if err != nil {
		return "", err
	}
	return s.onManifest(ctx, g, []string{"history", fmt.Sprintf("--limit=%d", limit)}, &r, registry{image: g.Image}, gitCommit{}, format)
}
