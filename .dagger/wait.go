package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

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
	// The cluster: a folder with a cluster.yaml in the clusters' folder.
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
	// The Deployment (namespace/name). Default: the one that castle.yaml names,
	// or that runs an image of the site's repository.
	// +optional
	deployment string,
	// The repository whose castle.yaml names the image.
	// +defaultPath="/"
	// +ignore=["*", "!castle.yaml"]
	source *dagger.Directory,
	// The site's name in castle.yaml. Default: the only one.
	// +optional
	site string,
	// The GitRepository that Flux fetches.
	// +default="flux-system/flux-system"
	fluxSource string,
	// The Kustomization that is asked first to apply it.
	// +default="flux-system/flux-system"
	fluxKustomization string,
	// How long to wait, such as 90s.
	// +default="10m"
	timeout string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in. Left out
	// of it: Go files, and folders named testdata, content, themes, static or
	// assets, which belong to sites.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig", "**/*.go", "**/testdata", "**/content", "**/themes", "**/static", "**/assets"]
	repository *dagger.Directory,
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
) (_ string, err error) {
	defer ended("wait-blog", format, &err)
	r := rollout{
		castle: m, wait: true, timeout: timeout, cluster: m.optionalCluster(cluster, repository, ageKey, timeScale), kubeconfig: kubeconfig,
		deployment: deployment, source: fluxSource, kustomization: fluxKustomization,
	}
	if err := r.check(false); err != nil {
		return "", err
	}
	if err := r.describe(ctx); err != nil {
		return "", err
	}
	flags := []string{"--revision=" + revision, "--image=" + image}
	if image == "" && deployment == "" {
		s := &Site{Castle: m, Source: source, Given: given(flag{"site", site})}
		g, err := s.goal(ctx, forImage, r.described)
		if err != nil {
			return "", fmt.Errorf("it is not known which Deployment to wait for: name it with --deployment, or the image with --image\n%w", err)
		}
		r.deployment = g.Deployment
		flags = append(flags, "--repository="+g.Image)
	}
	return r.await(ctx, format, func(container *dagger.Container) *dagger.Container { return container }, flags...)
}

// rollout is where and how long a published image is waited for, if it is.
type rollout struct {
	castle                            *Castle
	wait                              bool
	rollback                          bool // put the image before it back where the rollout fails
	timeout                           string
	cluster                           *Cluster   // nil: none is named
	described                         *described // the cluster, once it has been asked for
	kubeconfig                        *dagger.Secret
	deployment, source, kustomization string
}

// defaultRetryFor is the default of --retry-for, and what castle-publish has for it.
const defaultRetryFor = "4m"

// checkRetryFor refuses, before anything is built, what is no time.
func checkRetryFor(text string) error {
	if during, err := time.ParseDuration(text); err != nil || during <= 0 {
		return fmt.Errorf("--retry-for %q is not a duration: give one such as 90s or 10m", text)
	}
	return nil
}

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// check refuses, before anything is built, what could not be waited for.
func (r *rollout) check(dryRun bool) error {
	switch {
	case r.wait && dryRun:
		return errors.New("--wait waits for what Flux rolls out: it does not go with --dry-run")
	case r.kubeconfig != nil && r.cluster != nil:
		return errors.New("--cluster and --kubeconfig are two ways to a cluster: give one")
	case !r.wait && r.rollback:
		return errors.New("--rollback-on-failure is for a rollout that is waited for: give --wait too")
	case !r.wait && r.kubeconfig != nil:
		return errors.New("--kubeconfig is for waiting: give --wait too")
	case !r.wait:
		return nil
	case r.kubeconfig == nil && r.cluster == nil:
		return errors.New("it is not known on which cluster to wait for the rollout: name it with --cluster, or give --kubeconfig (env:NAME, file:PATH)")
	}
	if timeout, err := time.ParseDuration(r.timeout); err != nil || timeout <= 0 {
		return fmt.Errorf("%q is no time to wait: want one such as 90s or 10m", r.timeout)
	}
	for _, object := range []struct{ flag, name string }{
		{"deployment", r.deployment}, {"flux-source", r.source}, {"flux-kustomization", r.kustomization},
	} {
		if object.name != "" && !objectName.MatchString(object.name) {
			return fmt.Errorf("--%s %q: want namespace/name, such as blog/hugo-blog", object.flag, object.name)
		}
	}
	return nil
}

// proposed is how the change is committed, with the wait for its merge where the
// rollout is waited for.
func (r *rollout) proposed(commit gitCommit, mergeTimeout string) (gitCommit, error) {
	if !r.wait {
		return commit, nil
	}
	if !commit.pullRequest {
		if commit.pushBranch != "" {
			return commit, errors.New("--wait waits for what Flux rolls out: with --push-branch it needs --pull-request, whose merge it can wait for")
		}
		return commit, nil
	}
	if timeout, err := time.ParseDuration(mergeTimeout); err != nil || timeout <= 0 {
		return commit, fmt.Errorf("--merge-timeout %q is no time to wait: want one such as 30m or 2h", mergeTimeout)
	}
	commit.mergeTimeout = mergeTimeout
	return commit, nil
}

// describe finds the cluster that is named, if any.
func (r *rollout) describe(ctx context.Context) (err error) {
	if r.cluster != nil {
		r.described, err = r.cluster.describe(ctx)
	}
	return err
}

// enterSandbox gives a container the way into a sandbox, also where nothing is
// waited for: its registry and its Git are nowhere else.
func (r *rollout) enterSandbox(ctx context.Context) (dagger.WithContainerFunc, error) {
	if r.described == nil || !r.described.isSandbox() {
		return func(container *dagger.Container) *dagger.Container { return container }, nil
	}
	return r.described.enter(ctx)
}

// reach makes sure that there is a way to the cluster before anything is
// published that is to be waited for. A sandbox comes up with it, while the
// image is still being built.
func (r *rollout) reach(ctx context.Context) error {
	if !r.wait {
		if r.described == nil || !r.described.isSandbox() {
			return nil
		}
		world, err := r.described.world(ctx)
		if err == nil {
			_, _ = world.Start(ctx) // a failure is found where the world is needed
		}
		return nil
	}
	container, flags, err := r.container(ctx)
	if err != nil {
		return err
	}
	_, err = uncached(container).WithExec(append([]string{clusterProgram, "reach"}, flags...)).Sync(ctx)
	return plain(err)
}

// container has castle-cluster and the way to the cluster; the flags say which
// one it is, and what is looked at there.
func (r *rollout) container(ctx context.Context) (*dagger.Container, []string, error) {
	container, err := r.castle.container(clusterProgram)
	if err != nil {
		return nil, nil, err
	}
	flags := []string{"--timeout=" + r.timeout, "--flux-source=" + r.source, "--flux-kustomization=" + r.kustomization}
	if r.deployment != "" {
		flags = append(flags, "--deployment="+r.deployment)
	}
	if r.described == nil {
		return container.WithSecretVariable("CASTLE_KUBECONFIG", r.kubeconfig), flags, nil
	}
	enter, err := r.described.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	return container.With(enter).With(r.described.mounted),
		append(flags, "--cluster-folder="+r.described.folder), nil
}

// await waits, and returns the report.
func (r *rollout) await(ctx context.Context, format Format, mount dagger.WithContainerFunc, what ...string) (string, error) {
	waited, err := r.waited(ctx, format, mount, what...)
	if err != nil {
		return "", err
	}
	text, err := waited.Stdout(ctx)
	return text, plain(err)
}

// awaitBeside runs a command of castle-publish and awaits what it changes.
func (r *rollout) awaitBeside(ctx context.Context, format Format, container *dagger.Container, args []string) (text string, err error) {
	err = beside(ctx, container, args, func(ctx context.Context, mount dagger.WithContainerFunc, published string) (err error) {
		text, err = r.await(ctx, format, mount, published)
		return err
	})
	return text, err
}

// outcomeBeside is awaitBeside where a rollout that failed is no error of this
// call: its outcome is what castle-publish undo begins with.
func (r *rollout) outcomeBeside(ctx context.Context, format Format, container *dagger.Container, args []string) (text string, outcome *dagger.File, failed bool, err error) {
	err = beside(ctx, container, args, func(ctx context.Context, mount dagger.WithContainerFunc, published string) (err error) {
		text, outcome, failed, err = r.outcome(ctx, format, mount, published)
		return err
	})
	return text, outcome, failed, err
}

// outcome waits like await, and returns what castle-publish undo begins with.
func (r *rollout) outcome(ctx context.Context, format Format, mount dagger.WithContainerFunc, what ...string) (text string, outcome *dagger.File, failed bool, err error) {
	const file = "/outcome.json"
	waited, err := r.waited(ctx, format, mount, append(what, "--outcome="+file)...)
	if err != nil {
		return "", nil, false, err
	}
	if waited, err = waited.Sync(ctx); err != nil { // once: what follows is asked of the same run
		return "", nil, false, plain(err)
	}
	if text, err = waited.Stdout(ctx); err != nil {
		return "", nil, false, plain(err)
	}
	outcome = waited.File(file)
	contents, err := outcome.Contents(ctx)
	if err != nil {
		return "", nil, false, plain(err)
	}
	var result struct {
		Rollout struct {
			Failed bool `json:"failed"`
		} `json:"rollout"`
	}
	if err := json.Unmarshal([]byte(contents), &result); err != nil {
		return "", nil, false, fmt.Errorf("castle-cluster rollout: %w", err)
	}
	return text, outcome, result.Rollout.Failed, nil
}

func (r *rollout) waited(ctx context.Context, format Format, mount dagger.WithContainerFunc, what ...string) (*dagger.Container, error) {
	container, flags, err := r.container(ctx)
	if err != nil {
		return nil, err
	}
	args := append(append([]string{clusterProgram, "rollout", "--format=" + string(format)}, flags...), what...)
	return uncached(container).With(mount).WithExec(args), nil
}
