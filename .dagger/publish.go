package main

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

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
// What is published, and where, stands in the castle.yaml of the source; a flag
// goes before it. A working tree that is not clean is refused, and its files are
// listed. What was made from the same commit, images, castle and options is the
// same image: publishing it again changes nothing. Any other image under the tag
// is never overwritten, nor rolled out; with --rebuild this one gets a tag beside
// it. The manifest is committed only after the
// registry has confirmed the digest, and with --sign after it has the signature:
// `dagger call verify-blog` looks at both.
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
	// (https://github.com/me/blog#main). Default: the repository that the module
	// is called in.
	// +defaultPath="/"
	source *dagger.Directory,
	// The site's name in castle.yaml. Default: the only one.
	// +optional
	site string,
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
	// The token for the blog's own remote. Asked only when HEAD is detached: the
	// commit must then be on one of the remote's branches or tags.
	// +optional
	sourceToken *dagger.Secret,
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
	// Write the digest beside the tag, so that the manifest names these very
	// bytes.
	// +optional
	pinDigest bool,
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
	// The security headers: fitted to what the built pages use, strict (nothing
	// from elsewhere, nothing inline), off, or the text of a
	// Content-Security-Policy.
	// +optional
	headers string,
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
	// Build and compare, but push nothing.
	// +optional
	dryRun bool,
	// Publish the commit again where its tag is another image, such as one on an
	// older base: with -r2 behind the tag, or the next number that the
	// registry does not have.
	// +optional
	rebuild bool,
	// Sign the image as cosign does, before the manifest names it. One that has this
	// key's signature already is left as it is.
	// +optional
	sign bool,
	// Attach a signed list of what the image consists of (SPDX), unless it has one.
	// +optional
	sbom bool,
	// The private key to sign with, which cosign generate-key-pair made
	// (file:cosign.key, env:NAME, op://…).
	// +optional
	cosignKey *dagger.Secret,
	// The private key's password.
	// +optional
	cosignPassword *dagger.Secret,
	// Wait until the cluster runs what was published.
	// +optional
	wait bool,
	// With --wait: where the Deployment gets the image and is not available with it
	// in time, put the image before it back by a commit, and wait for that. The
	// call fails all the same. With --pull-request the way back is proposed, and
	// not waited for.
	// +optional
	rollbackOnFailure bool,
	// How long to wait, such as 90s.
	// +default="10m"
	waitTimeout string,
	// The cluster that rolls the blog out: a folder of the clusters'
	// folder. Its GitOps repository goes before that of castle.yaml.
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
	// How long a step that fails is tried again, from its first failure on, such as
	// 10m: at the registry, at a branch that others push to, and where Hugo modules
	// and npm packages come from.
	// +default="4m"
	retryFor string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return m.
		Site(source, site, path, hugo, image, tagPrefix, platforms, port, baseUrl, headers, registryUsername, registryPassword, registryService,
			gitopsUrl, gitopsBranch, manifestPath, container, resource, deployment, pinDigest, authorName, authorEmail, signingKey,
			gitToken, sshAgent, knownHosts, sourceToken, gitopsService).
		Publish(ctx, m.optionalCluster(cluster, repository, ageKey, timeScale), kubeconfig, wait, rollbackOnFailure, waitTimeout, fluxSource, fluxKustomization,
			dryRun, rebuild, pushBranch, pullRequest, githubApi, mergeTimeout, sign, sbom, cosignKey, cosignPassword, retryFor, format)
}

// Publish builds the site at a clean commit, pushes its image, and points the
// GitOps manifest at it, as publish-blog does.
//
// +cache="never"
func (s *Site) Publish(
	ctx context.Context,
	// The cluster that rolls it out.
	// +optional
	cluster *Cluster,
	// For waiting on a cluster without a description: a kubeconfig's text.
	// +optional
	kubeconfig *dagger.Secret,
	// Wait until the cluster runs what was published.
	// +optional
	wait bool,
	// With --wait: where the rollout fails, put the image before it back.
	// +optional
	rollbackOnFailure bool,
	// How long to wait, such as 90s.
	// +default="10m"
	waitTimeout string,
	// The GitRepository that Flux fetches.
	// +default="flux-system/flux-system"
	fluxSource string,
	// The Kustomization that is asked first to apply it.
	// +default="flux-system/flux-system"
	fluxKustomization string,
	// Build and compare, but push nothing.
	// +optional
	dryRun bool,
	// Publish the commit again, where it was published from other inputs.
	// +optional
	rebuild bool,
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
	// Sign the image, before the manifest names it.
	// +optional
	sign bool,
	// Attach a signed list of what the image consists of (SPDX).
	// +optional
	sbom bool,
	// The private key to sign with, which cosign generate-key-pair made.
	// +optional
	cosignKey *dagger.Secret,
	// The private key's password.
	// +optional
	cosignPassword *dagger.Secret,
	// How long a step that fails is tried again, such as 10m.
	// +default="4m"
	retryFor string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (_ string, err error) {
	defer ended("publish", format, &err)
	if err := checkRetryFor(retryFor); err != nil {
		return "", err
	}
	r := rollout{
		castle: s.Castle, wait: wait, timeout: waitTimeout, cluster: cluster, kubeconfig: kubeconfig,
		source: fluxSource, kustomization: fluxKustomization, rollback: rollbackOnFailure,
	}
	if err := r.check(dryRun); err != nil {
		return "", err
	}
	s = s.proposing(pullRequest, githubApi)
	b := blog{castle: s.Castle, source: s.Source, use: toPublish, timer: newTimer()}
	b.timer.alone = true
	if retryFor != defaultRetryFor { // it is in the key of the build's cache
		b.retryFor = retryFor
	}
	if dryRun {
		b.use = toLook
	}
	compiled, err := b.compiled(ctx)
	if err != nil {
		return "", plain(err)
	}
	signed := signing{sign: sign, sbom: sbom, key: cosignKey, password: cosignPassword}
	if err := signed.check(ctx, compiled); err != nil {
		return "", err
	}
	need := forBuild // a cluster knows of the rest
	if cluster == nil {
		need = forManifest
	}
	at, err := s.settings(ctx, need)
	if err != nil {
		return "", err
	}
	planned, err := r.proposed(s.commit(at, pushBranch, dryRun), mergeTimeout)
	if err != nil {
		return "", err
	}
	b.path, b.headers, b.baseURL, b.asked, b.after = at.Path, at.Headers, at.BaseURL, at.hugo(), at.AfterBuild
	g := &goal{settings: at, token: s.GitToken}

	// A named cluster may have another GitOps repository: castle-publish publish
	// looks at that one before it pushes the image.
	if cluster == nil {
		b.beside = func(ctx context.Context, export *exported) error { return s.preflight(ctx, g, planned, export) }
	}

	// The site is built while the cluster is asked for its description, and
	// whether there is a way to it. Whatever fails ends the other.
	var export *exported
	var built *assembled
	both, building := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		export, built, err = b.whole(building, at, s.gitAccess(at, s.SourceToken))
		return plain(err)
	})
	both.Go(func() (err error) {
		if cluster == nil && !wait {
			r.deployment = g.Deployment
			return nil
		}
		reaching, done := shown(building, "reach the cluster", true)
		defer func() { done(err) }()
		if cluster != nil {
			if err := r.describe(reaching); err != nil {
				return err
			}
			if g, err = s.goal(reaching, forManifest, r.described); err != nil {
				return err
			}
		}
		r.deployment = g.Deployment
		return r.reach(reaching)
	})
	if err := both.Wait(); err != nil {
		return "", err
	}

	commit, err := r.proposed(s.commit(g.settings, pushBranch, dryRun), mergeTimeout) // the cluster's own repository may be another
	if err != nil {
		return "", err
	}
	command := slices.Concat([]string{"publish", "--commit=/commit.json", "--layout=/assembled/image", "--headers-report=/assembled/headers.json", "--warnings=/built/warnings.json", "--tag-prefix=" + g.TagPrefix,
		fmt.Sprintf("--rebuild=%t", rebuild), fmt.Sprintf("--gitops-checked=%t", export.besideDone)},
		b.timer.all(), g.flags(), signed.flags())
	registry := s.registry(g.settings)
	registry.retryFor = retryFor
	return s.onManifest(ctx, g, command, &r, registry, commit, format, func(container *dagger.Container) *dagger.Container {
		return container.
			WithMountedFile("/commit.json", export.file).
			WithMountedDirectory("/built", built.site.made).
			WithMountedDirectory("/assembled", built.made).
			With(signed.attach(export))
	})
}

// preflight looks at the GitOps repository, so that what the update of the
// manifest would refuse is known before the image is pushed.
func (s *Site) preflight(ctx context.Context, g *goal, commit gitCommit, export *exported) (err error) {
	ctx, done := shown(ctx, "check the GitOps repository", true)
	defer func() {
		if ctx.Err() != nil { // not waited for
			done(nil)
			return
		}
		done(err)
	}()
	container, err := s.Castle.container(publishProgram)
	if err != nil {
		return err
	}
	args := []string{publishProgram, "preflight", "--commit=/commit.json", "--tag-prefix=" + g.TagPrefix}
	for _, attach := range []func(*dagger.Container) (*dagger.Container, []string, error){s.manifest(g.settings).attach, commit.attach} {
		attached, flags, err := attach(container)
		if err != nil {
			return err
		}
		container, args = attached, append(args, flags...)
	}
	_, err = uncached(container).WithMountedFile("/commit.json", export.file).WithExec(args).Sync(ctx)
	return plain(err)
}

// onManifest runs a command of castle-publish that works on the manifest, and
// waits for what it changed where that is asked for. The cluster may be none.
func (s *Site) onManifest(ctx context.Context, g *goal, command []string, r *rollout, registry registry, commit gitCommit, format Format, mounts ...dagger.WithContainerFunc) (string, error) {
	container, args, err := s.ready(ctx, g, command, r, registry, commit, format, mounts...)
	if err != nil {
		return "", err
	}
	if !r.wait {
		// Not its output, in which Dagger masks each occurrence of a secret,
		// however short it is: a password of two letters takes a digest apart.
		const report = "/report"
		text, err := uncached(container).WithExec(append(args, "--report-file="+report)).File(report).Contents(ctx)
		return text, plain(err)
	}
	if !r.rollback {
		return r.awaitBeside(ctx, format, container, args)
	}
	text, outcome, failed, err := r.outcomeBeside(ctx, format, container, args)
	if err != nil || !failed {
		return text, err
	}
	const result = "/result.json"
	undo := append([]string{"undo", "--published=" + result}, g.flags()...)
	container, args, err = s.ready(ctx, g, undo, r, registry, commit, format, func(container *dagger.Container) *dagger.Container {
		return container.WithMountedFile(result, outcome)
	})
	if err != nil {
		return "", err
	}
	return r.awaitBeside(ctx, format, container, args)
}

// ready is a container in which a command of castle-publish that works on the
// manifest can run, and the command with all of its flags.
func (s *Site) ready(ctx context.Context, g *goal, command []string, r *rollout, registry registry, commit gitCommit, format Format, mounts ...dagger.WithContainerFunc) (*dagger.Container, []string, error) {
	container, err := s.Castle.container(publishProgram)
	if err != nil {
		return nil, nil, err
	}
	enter, err := r.enterSandbox(ctx)
	if err != nil {
		return nil, nil, err
	}
	container = container.With(enter)
	for _, mount := range mounts {
		container = container.With(mount)
	}
	args := append([]string{publishProgram}, command...)
	manifest := s.manifest(g.settings)
	manifest.access.token, manifest.access.plainHTTP = g.token, g.plainGit
	for _, attach := range []func(*dagger.Container) (*dagger.Container, []string, error){manifest.attach, registry.attach, commit.attach} {
		attached, flags, err := attach(container)
		if err != nil {
			return nil, nil, err
		}
		container, args = attached, append(args, flags...)
	}
	return container, append(args, "--format="+string(format)), nil
}
