package main

import (
	"context"
	"fmt"
	"path"

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

// sandboxPrograms are what runs for real in a sandbox: the file in its official
// image, by the image's key.
var sandboxPrograms = []struct{ key, file string }{
	{"etcd", "/usr/local/bin/etcd"},
	{"kube-apiserver", "/usr/local/bin/kube-apiserver"},
	{"kube-controller-manager", "/usr/local/bin/kube-controller-manager"},
	{"kube-scheduler", "/usr/local/bin/kube-scheduler"},
	{"kwok", "/usr/local/bin/kwok"},
	{"metallb-controller", "/controller"},
	{"external-secrets", "/bin/external-secrets"},
	{"source-controller", "/usr/local/bin/source-controller"},
	{"kustomize-controller", "/usr/local/bin/kustomize-controller"},
	{"helm-controller", "/usr/local/bin/helm-controller"},
}

// world is the sandbox's world as a service. Its machines, its Git and its
// secrets live in a cache volume that one world at a time holds: a service
// stops when no call uses it, and the next call powers it on again.
func (d *described) world(ctx context.Context) (*dagger.Service, error) {
	m := d.castle
	program, err := m.program("", "./ci/cmd/castle-sandbox")
	if err != nil {
		return nil, err
	}
	golang, err := m.image("golang", "")
	if err != nil {
		return nil, err
	}
	container := golang.
		WithoutWorkdir().
		WithMountedFile("/usr/local/bin/castle-sandbox", program).
		WithMountedDirectory("/cluster", d.terragrunt.Directory(path.Join("live", d.name))).
		WithMountedCache(worldMount, dag.CacheVolume("castle-world-"+d.name), dagger.ContainerWithMountedCacheOpts{Sharing: dagger.CacheSharingModeLocked})
	args := []string{"castle-sandbox", "serve", "--cluster=/cluster", "--dir=" + worldMount, "--binaries=" + binariesFolder,
		fmt.Sprintf("--listen=:%d", sandboxProxyPort), "--time-scale=" + d.sandbox.timeScale}
	for _, fault := range d.sandbox.faults {
		args = append(args, "--fault="+fault)
	}
	for _, program := range sandboxPrograms {
		image, err := m.image(program.key, "")
		if err != nil {
			return nil, err
		}
		container = container.WithMountedFile(path.Join(binariesFolder, program.key), image.File(program.file))
	}
	return container.
		WithExposedPort(sandboxProxyPort).
		AsService(dagger.ContainerAsServiceOpts{Args: args, InsecureRootCapabilities: true}), nil
}
