package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"dagger/castle/internal/dagger"
)

// Site is one Hugo site of a repository, with the ways to its image's registry
// and to the GitOps repository that names the image.
type Site struct {
	// +private
	Castle *Castle
	// +private
	Source *dagger.Directory
	// Given are the flags of `castle-publish settings` for what the call says
	// itself.
	// +private
	Given []string

	// +private
	RegistryPassword *dagger.Secret
	// +private
	RegistryService *dagger.Service
	// +private
	GitToken *dagger.Secret
	// +private
	SshAgent *dagger.Socket
	// +private
	KnownHosts *dagger.File
	// +private
	SourceToken *dagger.Secret
	// +private
	SigningKey *dagger.Secret
	// +private
	GitopsService *dagger.Service
}

// Site is a site of a repository, for pipelines that do several things with it.
// Its settings are those of the repository's castle.yaml; what is given here
// goes before them.
func (m *Castle) Site(
	// The repository: a working tree (a path), or a Git URL with a ref
	// (https://github.com/me/blog#main). Default: the one that the module is
	// called in.
	// +defaultPath="/"
	source *dagger.Directory,
	// The site's name in castle.yaml. Default: the only one.
	// +optional
	name string,
	// The Hugo site's folder in the source; "." for its root.
	// +optional
	path string,
	// The version of Hugo, such as 0.148.1. Default: what the repository names,
	// else castle's own.
	// +optional
	hugo string,
	// The image's repository.
	// +optional
	image string,
	// What stands before the SHA in the image's tag.
	// +optional
	tagPrefix string,
	// The platforms to publish for, as one index. Default: the engine's own.
	// +optional
	platforms []dagger.Platform,
	// The port that nginx listens on. From 1024 on the image runs as any user.
	// +optional
	port int,
	// The site's base URL, where it differs from the one in Hugo's
	// configuration.
	// +optional
	baseUrl string,
	// The security headers: fitted to what the built pages use, strict, off, or
	// the text of a Content-Security-Policy.
	// +optional
	headers string,
	// The user name for the registry.
	// +optional
	registryUsername string,
	// The password or token for the registry (env:NAME, file:PATH, op://…).
	// +optional
	registryPassword *dagger.Secret,
	// The registry as a service, where only this machine reaches it
	// (tcp://localhost:5000).
	// +optional
	registryService *dagger.Service,
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
	// The Deployment that is waited for (namespace/name), where kustomize gives
	// it another name than the manifest.
	// +optional
	deployment string,
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
	// The token for the GitOps repository over https.
	// +optional
	gitToken *dagger.Secret,
	// The SSH agent's socket, for a GitOps repository over ssh.
	// +optional
	sshAgent *dagger.Socket,
	// The known_hosts file for ssh. Default: knownHosts of castle.yaml.
	// +optional
	knownHosts *dagger.File,
	// The token for the source's own remote, asked only when HEAD is detached.
	// +optional
	sourceToken *dagger.Secret,
	// The GitOps remote as a service, where only this machine reaches it.
	// +optional
	gitopsService *dagger.Service,
) *Site {
	args := given(
		flag{"site", name}, flag{"path", path}, flag{"hugo", hugo}, flag{"image", image}, flag{"tag-prefix", tagPrefix}, flag{"base-url", baseUrl}, flag{"headers", headers},
		flag{"registry-username", registryUsername}, flag{"gitops-url", gitopsUrl}, flag{"gitops-branch", gitopsBranch}, flag{"manifest", manifestPath},
		flag{"container", container}, flag{"resource", resource}, flag{"deployment", deployment},
		flag{"author-name", authorName}, flag{"author-email", authorEmail},
	)
	for _, platform := range platforms {
		args = append(args, "--platform="+string(platform))
	}
	if port != 0 {
		args = append(args, fmt.Sprintf("--port=%d", port))
	}
	if pinDigest {
		args = append(args, "--pin-digest")
	}
	return &Site{
		Castle: m, Source: source, Given: args,
		RegistryPassword: registryPassword, RegistryService: registryService,
		GitToken: gitToken, SshAgent: sshAgent, KnownHosts: knownHosts, SourceToken: sourceToken,
		SigningKey: signingKey, GitopsService: gitopsService,
	}
}

// settingsFile is at the root of a user's repository.
const settingsFile = "castle.yaml"

// settings are what is read here of what `castle-publish settings` prints.
type settings struct {
	Path       string            `json:"path"`
	Image      string            `json:"image"`
	TagPrefix  string            `json:"tagPrefix"`
	Hugo       string            `json:"hugo"`
	HugoFrom   string            `json:"hugoFrom"`
	Platforms  []dagger.Platform `json:"platforms"`
	Port       int               `json:"port"`
	BaseURL    string            `json:"baseURL"`
	Headers    string            `json:"headers"`
	Manifest   string            `json:"manifest"`
	Container  string            `json:"container"`
	Resource   string            `json:"resource"`
	Deployment string            `json:"deployment"`
	PinDigest  bool              `json:"pinDigest"`
	AfterBuild []string          `json:"afterBuild"`

	GitOpsURL    string `json:"gitopsURL"`
	GitOpsBranch string `json:"gitopsBranch"`
	AuthorName   string `json:"authorName"`
	AuthorEmail  string `json:"authorEmail"`
	PullRequest  bool   `json:"pullRequest"`
	GitHubAPI    string `json:"githubAPI"`

	RegistryUsername string `json:"registryUsername"`

	KnownHosts []string `json:"knownHosts"`
}

// hugo is the version that the call or castle.yaml asks for; its Version is empty where neither does.
func (s *settings) hugo() hugoVersion {
	version, digest, _ := strings.Cut(s.Hugo, "@")
	return hugoVersion{Version: version, From: s.HugoFrom, Digest: digest}
}

// What a call cannot do without: the site alone, its image too, or the manifest
// that names the image as well.
const (
	forBuild    = "build"
	forImage    = "image"
	forManifest = "manifest"
)

// sites are the names of the sites that a repository has. The only one may be
// there without being named.
func (m *Castle) sites(ctx context.Context, source *dagger.Directory) (names []string, err error) {
	if err := m.refuseTheModulesOwn(ctx, source, "--source"); err != nil {
		return nil, err
	}
	container, err := m.container(publishProgram)
	if err != nil {
		return nil, err
	}
	files := dag.Directory().WithDirectory("/", source, dagger.DirectoryWithDirectoryOpts{
		Include: []string{settingsFile, "hugo.*", "config.*", "config/_default", "config/production"},
	})
	text, err := container.
		WithMountedDirectory("/repository", files).
		WithExec([]string{publishProgram, "sites", "--folder=/repository"}).
		Stdout(ctx)
	if err != nil {
		return nil, plain(err)
	}
	return names, json.Unmarshal([]byte(text), &names)
}

// settings puts together what the call, the cluster and castle.yaml say. The
// answer is cached as long as they say the same.
func (s *Site) settings(ctx context.Context, need string, cluster ...string) (*settings, error) {
	if err := s.Castle.refuseTheModulesOwn(ctx, s.Source, "--source"); err != nil {
		return nil, err
	}
	container, err := s.Castle.container(publishProgram)
	if err != nil {
		return nil, err
	}
	// By its text: of a source in which anything else changed, its folder would be another one, and the step run again.
	folder := dag.Directory()
	there, err := s.Source.Exists(ctx, settingsFile)
	if err != nil {
		return nil, err
	}
	if there {
		text, err := s.Source.File(settingsFile).Contents(ctx)
		if err != nil {
			return nil, err
		}
		folder = folder.WithNewFile(settingsFile, text)
	}
	args := append([]string{publishProgram, "settings", "--folder=/repository", "--for=" + need}, s.Given...)
	text, err := container.
		WithMountedDirectory("/repository", folder).
		WithExec(append(args, cluster...)).
		Stdout(ctx)
	if err != nil {
		return nil, plain(err)
	}
	resolved := &settings{}
	if err := json.Unmarshal([]byte(text), resolved); err != nil {
		return nil, fmt.Errorf("castle-publish settings: %w", err)
	}
	return resolved, nil
}

// gitAccess is how to get into a Git remote with a token. The hosts' keys of a
// call go before those of castle.yaml.
func (s *Site) gitAccess(at *settings, token *dagger.Secret) gitAccess {
	access := gitAccess{token: token, sshAgent: s.SshAgent, knownHosts: s.KnownHosts}
	if access.knownHosts == nil && len(at.KnownHosts) > 0 {
		access.knownHosts = dag.Directory().WithNewFile("known_hosts", strings.Join(at.KnownHosts, "\n")+"\n").File("known_hosts")
	}
	return access
}

// registry is where the image is.
func (s *Site) registry(at *settings) registry {
	username := at.RegistryUsername
	if s.RegistryPassword == nil && !slices.ContainsFunc(s.Given, func(flag string) bool { return strings.HasPrefix(flag, "--registry-username=") }) {
		username = "" // castle.yaml knows the user also where nobody logs in
	}
	return registry{image: at.Image, username: username, password: s.RegistryPassword, service: s.RegistryService}
}

// manifest is the place that names the image.
func (s *Site) manifest(at *settings) manifest {
	return manifest{
		url: at.GitOpsURL, branch: at.GitOpsBranch, path: at.Manifest,
		image: at.Image, container: at.Container, resource: at.Resource,
		access: s.gitAccess(at, s.GitToken), service: s.GitopsService,
	}
}

// commit is how a change of the manifest is committed.
func (s *Site) commit(at *settings, pushBranch string, dryRun bool) gitCommit {
	return gitCommit{
		pushBranch: pushBranch, pinDigest: at.PinDigest, dryRun: dryRun,
		authorName: at.AuthorName, authorEmail: at.AuthorEmail, signingKey: s.SigningKey,
		pullRequest: at.PullRequest, githubAPI: at.GitHubAPI,
	}
}

// proposing adds to what the call gives itself whether it wants a pull request.
func (s *Site) proposing(pullRequest bool, githubAPI string) *Site {
	own := *s
	own.Given = append(slices.Clone(s.Given), given(flag{"github-api", githubAPI})...)
	if pullRequest {
		own.Given = append(own.Given, "--pull-request")
	}
	return &own
}

// goal is the site with what a named cluster is described with: its GitOps
// repository, and for a sandbox its own registry and token.
type goal struct {
	*settings
	token     *dagger.Secret
	plainHTTP string // the registry that speaks HTTP
	plainGit  string // the Git host that gets the token over HTTP
}

func (s *Site) goal(ctx context.Context, need string, d *described) (*goal, error) {
	if d == nil {
		at, err := s.settings(ctx, need)
		return &goal{settings: at, token: s.GitToken}, err
	}
	world, err := d.ownWorld(ctx)
	if err != nil {
		return nil, err
	}
	url, token := d.remote(world, s.GitToken)
	flags := []string{"--cluster-gitops-url=" + url, "--cluster-gitops-branch=" + d.GitOps.Branch}
	if world != nil {
		flags = append(flags, "--cluster-registry="+world.Registry)
	}
	at, err := s.settings(ctx, need, flags...)
	if err != nil {
		return nil, err
	}
	g := &goal{settings: at, token: token}
	if at.GitOpsURL == url {
		if g.plainGit, err = plainHostOf(url, world); err != nil {
			return nil, err
		}
	}
	if world != nil && hostOfImage(at.Image) == world.Registry {
		g.plainHTTP = world.Registry
	}
	return g, nil
}

func (g *goal) flags() []string {
	if g.plainHTTP == "" {
		return nil
	}
	return []string{"--plain-http=" + g.plainHTTP}
}
