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
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return m.onManifest(ctx, []string{"rollback", "--to=" + to}, manifest{
		url: gitopsUrl, branch: gitopsBranch, path: manifestPath,
		image: image, container: container, resource: resource,
		access:  gitAccess{token: gitToken, sshAgent: sshAgent, knownHosts: knownHosts},
		service: gitopsService,
	}, registry{
		image: image, username: registryUsername, password: registryPassword, service: registryService,
	}, gitCommit{
		pushBranch: pushBranch, pinDigest: pinDigest, dryRun: dryRun,
		authorName: authorName, authorEmail: authorEmail, signingKey: signingKey,
	}, format)
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
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return m.onManifest(ctx, []string{"history", fmt.Sprintf("--limit=%d", limit)}, manifest{
		url: gitopsUrl, branch: gitopsBranch, path: manifestPath,
		image: image, container: container, resource: resource,
		access:  gitAccess{token: gitToken, sshAgent: sshAgent, knownHosts: knownHosts},
		service: gitopsService,
	}, registry{image: image}, gitCommit{}, format)
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
