package main

import (
	"context"
	"fmt"
	"slices"

	"dagger/castle/internal/dagger"
)

// Format is how a result is written.
type Format string

const (
	// FormatText is for a person.
	FormatText Format = "TEXT"
	// FormatJson is for a program.
	FormatJson Format = "JSON"
	// FormatMarkdown is for GitHub's job summary.
	FormatMarkdown Format = "MARKDOWN"
)

// PublishBlog builds the blog at a clean commit into an nginx image tagged with
// the commit's SHA, pushes it, and then points the GitOps manifest at it.
//
// A working tree that is not clean is refused, and its files are listed. What
// was made from the same commit, images, castle and options is the same image:
// publishing it again changes nothing. A tag that was made from anything else
// is never overwritten. The manifest is committed only after the registry has
// confirmed the digest.
//
// With --wait, Flux is asked to look at once, and the call ends when the
// cluster's Deployment is available with the new image:
// `dagger call publish-blog --wait --cluster blue`. For a sandbox, its own
// registry, GitOps repository and token are the defaults.
//
// +cache="never"
func (m *Castle) PublishBlog(
	ctx context.Context,
	// The blog's Git working tree (a path), or a Git URL with a ref
	// (https://github.com/me/blog#main). Default: this module's own repository.
	// +defaultPath="/"
	source *dagger.Directory,
	// The Hugo site's folder in the source; "." for its root.
	// +default="blog"
	path string,
	// The image's repository.
	// +default="tazzo/tazlab.net"
	image string,
	// What stands before the SHA in the image's tag.
	// +default="blog-"
	tagPrefix string,
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
	// The token for the blog's own remote. Asked only when HEAD is detached: the
	// commit must then be on one of the remote's branches or tags.
	// +optional
	sourceToken *dagger.Secret,
	// Push the manifest's change to this branch instead, ready for a pull
	// request.
	// +optional
	pushBranch string,
	// Write the digest beside the tag, so that the manifest names these very
	// bytes.
	// +optional
	pinDigest bool,
	// The platforms to publish for, as one index. Default: the engine's own.
	// +optional
	platforms []dagger.Platform,
	// The port that nginx listens on. From 1024 on the image runs as any user.
	// +default=80
	port int,
	// The site's base URL, where it differs from the one in Hugo's
	// configuration.
	// +optional
	baseUrl string,
	// The security headers: fitted to what the built pages use, strict (nothing
	// from elsewhere, nothing inline), off, or the text of a
	// Content-Security-Policy.
	// +default="fitted"
	headers string,
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
	// Build and compare, but push nothing.
	// +optional
	dryRun bool,
	// Wait until the cluster runs what was published.
	// +optional
	wait bool,
	// How long to wait, such as 90s.
	// +default="10m"
	waitTimeout string,
	// The cluster that rolls the blog out: a folder in live of the terragrunt
	// folder. Its GitOps repository is the default of --gitops-url.
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

	blog := blog{castle: m, source: source, path: path, headers: headers, timer: newTimer()}
	export, err := blog.export(ctx, false)
	if err != nil {
		return "", plain(err)
	}
	if err := blog.reachable(ctx, export, gitAccess{token: sourceToken, sshAgent: sshAgent, knownHosts: knownHosts}); err != nil {
		return "", plain(err)
	}
	rollout.powerOn(ctx)
	public, err := blog.hugo(ctx, export, baseUrl)
	if err != nil {
		return "", plain(err)
	}
	built, err := blog.image(ctx, export, public, serving{port: port, baseURL: baseUrl, platforms: platforms})
	if err != nil {
		return "", plain(err)
	}

	command := slices.Concat([]string{"publish", "--commit=/commit.json", "--layout=/image", "--headers-report=/headers.json", "--tag-prefix=" + tagPrefix},
		blog.timer.all(), goal.flags(), rolloutFlags, []string{fmt.Sprintf("--wait=%t", wait)})
	return m.onManifest(ctx, command, manifest{
		url: goal.url, branch: goal.branch, path: manifestPath,
		image: goal.image, container: container, resource: resource,
		access:  gitAccess{token: goal.token, sshAgent: sshAgent, knownHosts: knownHosts},
		service: gitopsService,
	}, registry{
		image: goal.image, username: registryUsername, password: registryPassword, service: registryService,
	}, commit, format, func(container *dagger.Container) *dagger.Container {
		return container.
			WithMountedFile("/commit.json", export.file).
			WithMountedFile("/headers.json", built.headers).
			WithMountedDirectory("/image", built.layout)
	}, enter)
}
