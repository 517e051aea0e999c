package main

import (
	"context"
	"errors"

	"dagger/castle/internal/dagger"
)

// CheckGitops looks for what would keep a cluster from getting what a GitOps
// repository says that Flux follows: folders that kustomize cannot build, objects
// that do not fit their schema, custom resources that their own chart has to
// define first, Kustomizations that wait for each other or for nothing, images
// without a tag that stays, Secrets in clear, routes that end nowhere, and more.
//
// Everything is built as Flux builds it, and nothing is fetched. An error fails
// the call; all of them are told at once, with file, line and what to do.
//
// +check
// +cache="never"
func (m *Castle) CheckGitops(
	ctx context.Context,
	// The GitOps repository's working tree (a path), or a Git URL with a ref.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	source *dagger.Directory,
	// A folder of it, such as clusters/production: only the Kustomizations there,
	// and what they apply, are looked at.
	// +optional
	path string,
	// A folder with CustomResourceDefinitions that the repository does not have,
	// such as a cluster's own (kubectl get crds -o yaml).
	// +optional
	crds *dagger.Directory,
	// Flux runs with its multi-tenancy lockdown, as castle installs it: name what
	// fails then, also where nothing in the repository says so.
	// +optional
	lockdown bool,
	// What to leave out: a rule (chart-range), or a rule and a pattern for the
	// cause or the file as the report shows them (plain-secret:test/*).
	// +optional
	ignore []string,
	// What is known and fails no more: the file that gitops-baseline gives.
	// +optional
	baseline *dagger.File,
	// A cluster that is asked as well what it would say to the objects, by a dry
	// run that changes nothing there (file:PATH).
	// +optional
	kubeconfig *dagger.Secret,
	// The same for a cluster that castle created, by its name, such as sandbox.
	// +optional
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// The age key that decrypts the cluster's SOPS file. Default: for a sandbox
	// its own.
	// +optional
	ageKey *dagger.Secret,
	// How much of a homelab's time the sandbox takes.
	// +default="0.05"
	timeScale string,
	// How the report is written.
	// +default="TEXT"
	format Format,
) (_ string, err error) {
	defer ended("check-gitops", format, &err)
	container, args, err := m.gitopsCheck(ctx, source, path, crds, lockdown, ignore)
	if err != nil {
		return "", err
	}
	if baseline != nil {
		container = container.WithMountedFile("/baseline.json", baseline)
		args = append(args, "--baseline=/baseline.json")
	}
	if cluster != "" {
		if kubeconfig != nil {
			return "", errors.New("--cluster and --kubeconfig are two ways to a cluster: give one")
		}
		d, err := m.Cluster(cluster, repository, ageKey, timeScale, nil).describe(ctx)
		if err != nil {
			return "", err
		}
		if kubeconfig, err = d.secret(ctx, "kubeconfig", "kubeconfig"); err != nil {
			return "", err
		}
		if d.isSandbox() { // its API is reached through its world alone
			enter, err := d.enter(ctx)
			if err != nil {
				return "", err
			}
			container = container.With(enter)
		}
	}
	if kubeconfig != nil {
		container = uncached(container.WithMountedSecret("/kubeconfig", kubeconfig))
		args = append(args, "--kubeconfig=/kubeconfig")
	}
	text, err := container.WithExec(append(args, "--format="+string(format))).Stdout(ctx)
	return text, plain(err)
}

// GitopsBaseline is what check-gitops finds today, for its --baseline: only what
// is new fails then. `dagger call gitops-baseline export --path baseline.json`.
func (m *Castle) GitopsBaseline(
	ctx context.Context,
	// The GitOps repository's working tree (a path), or a Git URL with a ref.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	source *dagger.Directory,
	// A folder of it, as for check-gitops.
	// +optional
	path string,
	// A folder with definitions, as for check-gitops.
	// +optional
	crds *dagger.Directory,
	// Flux runs with its multi-tenancy lockdown, as castle installs it: name what
	// fails then, also where nothing in the repository says so.
	// +optional
	lockdown bool,
	// What to leave out, as for check-gitops.
	// +optional
	ignore []string,
) (*dagger.File, error) {
	container, args, err := m.gitopsCheck(ctx, source, path, crds, lockdown, ignore)
	if err != nil {
		return nil, err
	}
	file, err := container.WithExec(append(args, "--write-baseline="+made+".json")).File(made + ".json").Sync(ctx)
	return file, plain(err)
}

// gitopsCheck is the container with the repository, and the command that checks
// it.
func (m *Castle) gitopsCheck(ctx context.Context, source *dagger.Directory, path string, crds *dagger.Directory, lockdown bool, ignore []string) (*dagger.Container, []string, error) {
	if err := m.refuseTheModulesOwn(ctx, source, "--source"); err != nil {
		return nil, nil, err
	}
	container, err := m.container(gitopsProgram)
	if err != nil {
		return nil, nil, err
	}
	container = container.WithMountedDirectory("/repository", source)
	args := []string{gitopsProgram, "check", "--repository=/repository", "--path=" + path}
	if lockdown {
		args = append(args, "--lockdown")
	}
	if crds != nil {
		container = container.WithMountedDirectory("/crds", crds)
		args = append(args, "--crds=/crds")
	}
	for _, entry := range ignore {
		args = append(args, "--ignore="+entry)
	}
	return container, args, nil
}
