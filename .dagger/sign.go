package main

import (
	"context"
	"fmt"

	"dagger/castle/internal/dagger"
)

// signing is how an image is signed; the zero value does not.
type signing struct {
	sign, sbom    bool
	key, password *dagger.Secret
}

func (s signing) flags() []string {
	if !s.sign && !s.sbom {
		return nil
	}
	flags := []string{fmt.Sprintf("--sign=%t", s.sign), fmt.Sprintf("--sbom=%t", s.sbom)}
	if s.sbom {
		flags = append(flags, "--export=/export")
	}
	return flags
}

// secrets gives a container the key.
func (s signing) secrets(container *dagger.Container) *dagger.Container {
	if s.key != nil {
		container = container.WithSecretVariable("CASTLE_COSIGN_KEY", s.key)
	}
	if s.password != nil {
		container = container.WithSecretVariable("CASTLE_COSIGN_PASSWORD", s.password)
	}
	return container
}

// attach gives a container the key, and for the SBOM the commit as it was
// exported.
func (s signing) attach(export *exported) dagger.WithContainerFunc {
	return func(container *dagger.Container) *dagger.Container {
		if s.sbom {
			container = container.WithMountedDirectory("/export", export.folder)
		}
		return s.secrets(container)
	}
}

// check refuses a key that does not sign, before anything is built.
func (s signing) check(ctx context.Context, container *dagger.Container) error {
	if !s.sign && !s.sbom && s.key == nil {
		return nil
	}
	_, err := uncached(s.secrets(container)).
		WithExec([]string{publishProgram, "signing-key", fmt.Sprintf("--sign=%t", s.sign), fmt.Sprintf("--sbom=%t", s.sbom)}).
		Sync(ctx)
	return plain(err)
}

// VerifyBlog looks at the image that the GitOps manifest names: whether the
// registry has the very one that was published, whether it is signed with the
// key, and whether it has a signed list of what it consists of. What is missing or
// wrong is listed, and fails the call. Nothing is changed.
//
// +cache="never"
func (m *Castle) VerifyBlog(
	ctx context.Context,
	// The public key of those who sign (cosign.pub).
	publicKey *dagger.File,
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
	// The registry as a service, where only this machine reaches it
	// (tcp://localhost:5000).
	// +optional
	registryService *dagger.Service,
	// The GitOps remote as a service, where only this machine reaches it.
	// +optional
	gitopsService *dagger.Service,
	// The image needs no SBOM.
	// +optional
	withoutSbom bool,
	// The cluster whose GitOps repository is read: a folder of the clusters'
	// folder. For a sandbox, its own registry and token are the defaults.
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
		Site(source, site, "", "", image, "", nil, 0, "", "", registryUsername, registryPassword, registryService,
			gitopsUrl, gitopsBranch, manifestPath, container, resource, "", false, "", "", nil,
			gitToken, sshAgent, knownHosts, nil, gitopsService).
		Verify(ctx, publicKey, m.optionalCluster(cluster, repository, ageKey, timeScale), withoutSbom, format)
}

// Verify looks at the image that the GitOps manifest names, as verify-blog does.
//
// +cache="never"
func (s *Site) Verify(
	ctx context.Context,
	// The public key of those who sign (cosign.pub).
	publicKey *dagger.File,
	// The cluster whose GitOps repository is read.
	// +optional
	cluster *Cluster,
	// The image needs no SBOM.
	// +optional
	withoutSbom bool,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (_ string, err error) {
	defer ended("verify", format, &err)
	r := rollout{castle: s.Castle, cluster: cluster}
	if err := r.describe(ctx); err != nil {
		return "", err
	}
	g, err := s.goal(ctx, forManifest, r.described)
	if err != nil {
		return "", err
	}
	const key = "/run/castle/cosign.pub"
	command := append([]string{"verify", "--public-key=" + key, fmt.Sprintf("--sbom=%t", !withoutSbom)}, g.flags()...)
	return s.onManifest(ctx, g, command, &r, s.registry(g.settings), gitCommit{}, format, func(container *dagger.Container) *dagger.Container {
		return container.WithMountedFile(key, publicKey)
	})
}
