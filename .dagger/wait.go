package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"dagger/castle/internal/dagger"
)

// WaitBlog asks Flux to look at its Git repository now, and waits until the
// blog's Deployment is available with what is found there. It changes nothing
// else, and says the revision, the image and how long it took; where it fails,
// what was waited for, what was seen last and what to look at.
//
// +cache="never"
func (m *Castle) WaitBlog(
	ctx context.Context,
	// The cluster: a folder in live of the terragrunt folder.
	// +optional
	cluster string,
	// For a cluster without a description: a kubeconfig's text (env:NAME,
	// file:PATH) with all credentials in it.
	// +optional
	kubeconfig *dagger.Secret,
	// The commit of the GitOps repository that must be rolled out. Default: the
	// newest.
	// +optional
	revision string,
	// The image that must run, with its tag. Then a commit that came after the
	// revision will do as well. Default: what the commit names.
	// +optional
	image string,
	// The blog's Deployment.
	// +default="blog/hugo-blog"
	deployment string,
	// The GitRepository that Flux fetches.
	// +default="flux-system/flux-system"
	fluxSource string,
	// The Kustomization that is asked first to apply it.
	// +default="flux-system/flux-system"
	fluxKustomization string,
	// How long to wait, such as 90s.
	// +default="10m"
	timeout string,
	// The folder with the layers and the clusters.
	// +defaultPath="/terragrunt"
	terragrunt *dagger.Directory,
	// The age key that decrypts the cluster's SOPS file. Default: for a sandbox
	// its own.
	// +optional
	ageKey *dagger.Secret,
	// How much of a homelab's time the sandbox takes.
	// +default="0.05"
	timeScale string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	rollout := rolloutWait{
		castle: m, wait: true, timeout: timeout, cluster: cluster, kubeconfig: kubeconfig,
		deployment: deployment, source: fluxSource, kustomization: fluxKustomization,
	}
	if err := rollout.check(gitCommit{}); err != nil {
		return "", err
	}
	if cluster != "" {
		var err error
		if rollout.described, err = m.describe(ctx, terragrunt, cluster, ageKey, sandbox{timeScale: timeScale}); err != nil {
			return "", err
		}
	}
	enter, flags, err := rollout.attach(ctx)
	if err != nil {
		return "", err
	}
	container, err := m.container(publishProgram)
	if err != nil {
		return "", err
	}
	args := append([]string{publishProgram, "wait", "--revision=" + revision, "--image=" + image, "--format=" + string(format)}, flags...)
	text, err := uncached(container).With(enter).WithExec(args).Stdout(ctx)
	return text, plain(err)
}

// rolloutWait is where and how long a published image is waited for.
type rolloutWait struct {
	castle                            *Castle
	wait                              bool
	timeout                           string
	cluster                           string
	described                         *described // where cluster is named
	kubeconfig                        *dagger.Secret
	deployment, source, kustomization string
}

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// check refuses, before anything is built, what could not be waited for after
// such a commit.
func (r rolloutWait) check(commit gitCommit) error {
	switch {
	case r.wait && (commit.dryRun || commit.pushBranch != ""):
		return errors.New("--wait waits for what Flux rolls out: it goes neither with --dry-run nor with --push-branch")
	case r.kubeconfig != nil && r.cluster != "":
		return errors.New("--cluster and --kubeconfig are two ways to a cluster: give one")
	case !r.wait && r.kubeconfig != nil:
		return errors.New("--kubeconfig is for waiting: give --wait too")
	case !r.wait:
		return nil
	case r.kubeconfig == nil && r.cluster == "":
		return errors.New("it is not known on which cluster to wait for the rollout: name it with --cluster, or give --kubeconfig (env:NAME, file:PATH)")
	}
	if timeout, err := time.ParseDuration(r.timeout); err != nil || timeout <= 0 {
		return fmt.Errorf("%q is no time to wait: want one such as 90s or 10m", r.timeout)
	}
	for _, object := range []struct{ flag, name string }{
		{"deployment", r.deployment}, {"flux-source", r.source}, {"flux-kustomization", r.kustomization},
	} {
		if !objectName.MatchString(object.name) {
			return fmt.Errorf("--%s %q: want namespace/name, such as blog/hugo-blog", object.flag, object.name)
		}
	}
	return nil
}

// describe finds the cluster that is named, if any, and returns the goal with
// what the cluster is described with in the place of the defaults.
func (r *rolloutWait) describe(ctx context.Context, terragrunt *dagger.Directory, ageKey *dagger.Secret, timeScale string, g goal) (goal, error) {
	if r.cluster == "" {
		return g, nil
	}
	var err error
	if r.described, err = r.castle.describe(ctx, terragrunt, r.cluster, ageKey, sandbox{timeScale: timeScale}); err != nil {
		return g, err
	}
	return r.described.goal(ctx, g)
}

// attach returns what gives a container the way to the cluster, and the flags
// that say what to wait for. A sandbox is entered without waiting too: its registry
// and its Git are nowhere else.
func (r rolloutWait) attach(ctx context.Context) (dagger.WithContainerFunc, []string, error) {
	attach := func(container *dagger.Container) *dagger.Container { return container }
	if r.described != nil && (r.wait || r.described.isSandbox()) {
		enter, err := r.described.enter(ctx)
		if err != nil {
			return nil, nil, err
		}
		attach = enter
	}
	if !r.wait {
		return attach, nil, nil
	}
	flags := []string{"--timeout=" + r.timeout, "--deployment=" + r.deployment, "--flux-source=" + r.source,
		"--flux-kustomization=" + r.kustomization}
	if r.described == nil {
		return func(container *dagger.Container) *dagger.Container {
			return container.WithSecretVariable("CASTLE_KUBECONFIG", r.kubeconfig)
		}, flags, nil
	}
	return func(container *dagger.Container) *dagger.Container {
		return attach(container).WithMountedDirectory(terragruntMount, r.described.terragrunt)
	}, append(flags, "--cluster-folder="+r.described.folder()), nil
}

// powerOn has a sandbox's world come up while the image is still being built. A
// failure is found where the world is needed.
func (r rolloutWait) powerOn(ctx context.Context) {
	if r.described == nil || !r.described.isSandbox() {
		return
	}
	if world, err := r.described.world(ctx); err == nil {
		go func() { _, _ = world.Start(ctx) }()
	}
}

// The defaults of publish-blog's arguments, and of those of rollback-blog and
// history, that a named cluster changes.
const (
	defaultImage        = "tazzo/tazlab.net"
	defaultGitOpsURL    = "https://github.com/tazzo/tazlab-k8s.git"
	defaultGitOpsBranch = "main"
)

// goal is the image and the GitOps repository that a call is about.
type goal struct {
	image, url, branch string
	token              *dagger.Secret
	plainHTTP          string // the registry that speaks HTTP
}

func (g goal) flags() []string {
	if g.plainHTTP == "" {
		return nil
	}
	return []string{"--plain-http=" + g.plainHTTP}
}

// goal puts what the cluster is described with in the place of the defaults.
func (d *described) goal(ctx context.Context, g goal) (goal, error) {
	clusters := g.url == defaultGitOpsURL
	if clusters {
		g.url = d.GitOps.URL
	}
	if g.branch == defaultGitOpsBranch {
		g.branch = d.GitOps.Branch
	}
	if !d.isSandbox() {
		return g, nil
	}

	// The values of a sandbox open nothing outside it.
	var world struct {
		Git struct {
			Token string `yaml:"token"`
		} `yaml:"git"`
		Registry string `yaml:"registry"`
	}
	file := path.Join("live", d.name, "world.yaml")
	text, err := d.terragrunt.File(file).Contents(ctx)
	if err != nil {
		return g, fmt.Errorf("%s cannot be read: %w", file, err)
	}
	if err := yaml.Unmarshal([]byte(text), &world); err != nil {
		return g, fmt.Errorf("%s: %w", file, err)
	}
	if clusters {
		// The world serves Git on plain HTTP for who does not know its authority.
		g.url = strings.Replace(g.url, "https://", "http://", 1)
	}
	if g.token == nil {
		g.token = dag.SetSecret("castle-"+d.name+"-git-token", world.Git.Token)
	}
	if g.image == defaultImage {
		g.image = world.Registry + "/" + g.image
	}
	if hostOfImage(g.image) == world.Registry {
		g.plainHTTP = world.Registry
	}
	return g, nil
}
