// Package credentials makes what a person needs to talk to a cluster: a kubeconfig and a talosconfig of an administrator, in
// memory.
package credentials

import (
	"context"

	"tazlab.net/castle/ci/cluster/adminconfig"
	"tazlab.net/castle/ci/cluster/run"
)

// Kubeconfig is an administrator's kubeconfig, made by a control plane.
func Kubeconfig(ctx context.Context, cluster *run.Cluster) ([]byte, error) {
	access, err := cluster.OpenCreated(ctx)
	if err != nil {
		return nil, err
	}
	return adminconfig.Kubeconfig(ctx, cluster, access)
}

// Talosconfig is an administrator's configuration for talosctl, with all control planes as endpoints.
func Talosconfig(ctx context.Context, cluster *run.Cluster) ([]byte, error) {
	access, err := cluster.OpenCreated(ctx)
	if err != nil {
		return nil, err
	}
	return adminconfig.Talosconfig(cluster, access)
}
