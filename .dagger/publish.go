package main

import (
	"context"

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
// A working tree that is not clean is refused, and its files are listed. The
// same commit always gives the same digest: publishing it again changes
// nothing. A tag that already holds something else is never overwritten. The
// manifest is committed only after the registry has confirmed the digest.
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
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	blog := blog{castle: m, source: source, path: path, timer: newTimer()}
	export, err := blog.export(ctx, false)
	if err != nil {
		return "", plain(err)
	}
	if err := blog.reachable(ctx, export, gitAccess{token: sourceToken, sshAgent: sshAgent, knownHosts: knownHosts}); err != nil {
		return "", plain(err)
	}
	public, err := blog.hugo(ctx, export, baseUrl)
	if err != nil {
		return "", plain(err)
	}
	layout, err := blog.image(ctx, export, public, port, platforms)
	if err != nil {
		return "", plain(err)
	}

	return m.onManifest(ctx, append([]string{"publish", "--commit=/commit.json", "--layout=/image", "--tag-prefix=" + tagPrefix}, blog.timer.all()...), manifest{
		url: gitopsUrl, branch: gitopsBranch, path: manifestPath,
		image: image, container: container, resource: resource,
		access:  gitAccess{token: gitToken, sshAgent: sshAgent, knownHosts: knownHosts},
		service: gitopsService,
	}, registry{
		image: image, username: registryUsername, password: registryPassword, service: registryService,
	}, gitCommit{
		pushBranch: pushBranch, pinDigest: pinDigest, dryRun: dryRun,
		authorName: authorName, authorEmail: authorEmail, signingKey: signingKey,
	}, format, func(container *dagger.Container) *dagger.Container {
		return container.WithMountedFile("/commit.json", export.file).WithMountedDirectory("/image", layout)
	})
}
