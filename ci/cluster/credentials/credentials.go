// Package credentials makes what a person needs to talk to a cluster: a kubeconfig and a talosconfig of an administrator, in
// memory.
package credentials

import (
	"tazlab.net/castle/ci/cluster/talos/machineconfig"

	"context"

	"tazlab.net/castle/ci/cluster/run"
)

// Kubeconfig is an administrator's kubeconfig, made by a control plane.
func Kubeconfig(ctx context.Context, cluster *run.Cluster) ([]byte, error) {
	access, err := cluster.Open(ctx)
	if err != nil {
		return nil, err
	}
	machines, err := cluster.Machines(access)
	if err != nil {
		return nil, err
	}
	defer machines.Close()
	return machines.Kubeconfig(ctx)
}

// Talosconfig is an administrator's configuration for talosctl, with all control planes as endpoints.
func Talosconfig(ctx context.Context, cluster *run.Cluster) ([]byte, error) {
	access, err := cluster.Open(ctx)
	if err != nil {
		return nil, err
	}
	_, config, err := machineconfig.Configs(cluster.Description, access.Bundle)
	if err != nil {
		return nil, err
	}
	return config.Bytes()
}
