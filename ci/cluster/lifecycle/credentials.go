package lifecycle

import (
	"context"

	"tazlab.net/castle/ci/cluster/talos"
)

// Kubeconfig is an administrator's kubeconfig, made by a control plane.
func (c *Cluster) Kubeconfig(ctx context.Context) ([]byte, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	access, err := c.resolve(ctx, false)
	if err != nil {
		return nil, err
	}
	machines, err := talos.Dial(c.description, access.bundle, talos.Options{})
	if err != nil {
		return nil, err
	}
	defer machines.Close()
	return machines.Kubeconfig(ctx)
}

// Talosconfig is an administrator's configuration for talosctl, with all control planes as endpoints.
func (c *Cluster) Talosconfig(ctx context.Context) ([]byte, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	access, err := c.resolve(ctx, false)
	if err != nil {
		return nil, err
	}
	_, config, err := talos.Configs(c.description, access.bundle)
	if err != nil {
		return nil, err
	}
	return config.Bytes()
}

// LastRun is the folder with the record of the latest run.
func (c *Cluster) LastRun() (string, error) {
	if err := c.load(); err != nil {
		return "", err
	}
	return c.lastRun()
}
