package main

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"

	"dagger/castle/internal/dagger"
)

// How the container that works on a sandbox reaches its world.
const (
	sandboxHost      = "sandbox"
	sandboxProxyPort = 3128
	worldMount       = "/world"
	binariesFolder   = "/opt/sandbox"
)

// sandbox is how a sandbox's world behaves.
type sandbox struct {
	timeScale string
	faults    []string
}

// checkTimeScale refuses what is no number, before a world is begun with it. It
// is empty where nothing takes time.
func checkTimeScale(text string) error {
	if text == "" {
		return nil
	}
	if scale, err := strconv.ParseFloat(text, 64); err != nil || !(scale >= 0) || math.IsInf(scale, 0) {
		return fmt.Errorf("--time-scale %q is not a number from 0 on: give 1 for real time, 0.05 for a twentieth of it, 0 for none", text)
	}
	return nil
}

// sandboxPrograms are what runs for real in a sandbox: the file in its official
// image, by the image's key.
var sandboxPrograms = []struct{ key, file string }{
	{"etcd", "/usr/local/bin/etcd"},
	{"kube-apiserver", "/usr/local/bin/kube-apiserver"},
	{"kube-controller-manager", "/usr/local/bin/kube-controller-manager"},
	{"kube-scheduler", "/usr/local/bin/kube-scheduler"},
	{"metallb-controller", "/controller"},
	{"external-secrets", "/bin/external-secrets"},
	{"source-controller", "/usr/local/bin/source-controller"},
	{"kustomize-controller", "/usr/local/bin/kustomize-controller"},
	{"helm-controller", "/usr/local/bin/helm-controller"},
	{"notification-controller", "/usr/local/bin/notification-controller"},
}

// worldSharing lets one world at a time have its volume.
var worldSharing = dagger.ContainerWithMountedCacheOpts{Sharing: dagger.CacheSharingModeLocked}

// ownWorld is what a sandbox's world.yaml says of the world that publishing
// needs; nil for any other cluster. These values open nothing outside it.
func (d *described) ownWorld(ctx context.Context) (*world, error) {
	if !d.isSandbox() {
		return nil, nil
	}
	const file = "world.yaml"
	text, err := d.own.File(file).Contents(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s of %s cannot be read: %w", file, d.folder, err)
	}
	w := &world{}
	if err := yaml.Unmarshal([]byte(text), w); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", file, d.folder, err)
	}
	return w, nil
}

type world struct {
	Git struct {
		Token string `yaml:"token"`
	} `yaml:"git"`
	Registry string `yaml:"registry"`
}

func (d *described) worldVolume() *dagger.CacheVolume { return d.volume("world") }

// world is the sandbox's world as a service. Its machines, its Git and its
// secrets live in a cache volume that one world at a time holds: a service
// stops when no call uses it, and the next call powers it on again.
func (d *described) world(ctx context.Context) (*dagger.Service, error) {
	m := d.castle
	container, err := m.container(sandboxProgram)
	if err != nil {
		return nil, err
	}
	container = container.
		With(d.mounted).
		WithMountedCache(worldMount, d.worldVolume(), worldSharing)
	args := []string{sandboxProgram, "serve", "--cluster=" + d.folder, "--dir=" + worldMount, "--binaries=" + binariesFolder,
		fmt.Sprintf("--listen=:%d", sandboxProxyPort), "--time-scale=" + d.sandbox.timeScale}
	for _, fault := range d.sandbox.faults {
		args = append(args, "--fault="+fault)
	}
	binaries := dag.Directory()
	for _, program := range sandboxPrograms {
		image, err := m.image(program.key, "")
		if err != nil {
			return nil, err
		}
		binaries = binaries.WithFile(program.key, image.File(program.file))
	}
	return container.
		WithMountedDirectory(binariesFolder, binaries).
		WithExposedPort(sandboxProxyPort).
		AsService(dagger.ContainerAsServiceOpts{Args: args, InsecureRootCapabilities: true}), nil
}

// Sandbox is a sandbox's world, as create left it, kept up for a look:
//
//	dagger call kubeconfig --cluster sandbox plaintext > kubeconfig
//	dagger call sandbox up --ports 3128:3128
//	HTTPS_PROXY=http://localhost:3128 kubectl --kubeconfig kubeconfig get pods -A
//
// +cache="never"
func (m *Castle) Sandbox(
	ctx context.Context,
	// The cluster.
	// +default="sandbox"
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// How much of a homelab's time the sandbox takes: 1 is real time, 0 none.
	// +default="0.05"
	timeScale string,
	// What goes wrong in the sandbox, such as webhook-late=20s; several times.
	// +optional
	fault []string,
) (*dagger.Service, error) {
	d, err := m.Cluster(cluster, repository, nil, timeScale, fault).describe(ctx)
	if err != nil {
		return nil, err
	}
	if !d.isSandbox() {
		return nil, fmt.Errorf("cluster %s is no sandbox: its platform is %s", cluster, d.Platform)
	}
	return d.world(ctx)
}

// SandboxReset empties a sandbox: its machines, its Git repository, its
// registry and the states of its layers are gone.
//
// +cache="never"
func (m *Castle) SandboxReset(
	ctx context.Context,
	// The cluster.
	// +default="sandbox"
	cluster string,
	// The id of the states' owner, as a refused call shows it: for a sandbox
	// whose secrets were made anew.
	// +optional
	owner string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
) (string, error) {
	d, err := m.Cluster(cluster, repository, nil, "", nil).describe(ctx)
	if err != nil {
		return "", err
	}
	if !d.isSandbox() {
		return "", fmt.Errorf("cluster %s is no sandbox, and what it holds is not to be reset but destroyed", cluster)
	}
	container, err := d.stateful()
	if err != nil {
		return "", err
	}
	text, err := uncached(container).
		WithMountedCache(worldMount, d.worldVolume(), worldSharing).
		WithSecretVariable("SOPS_AGE_KEY", d.ageKey).
		WithExec([]string{clusterProgram, "forget", "--folder=" + d.folder, "--state=" + stateMount,
			"--world=" + worldMount, "--owner=" + owner}).
		Stdout(ctx)
	return text, plain(err)
}
