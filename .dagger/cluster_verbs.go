package main

import (
	"context"

	"dagger/castle/internal/dagger"
)

// Create brings the cluster up, or goes on where an earlier call ended.
//
// +cache="never"
func (c *Cluster) Create(
	ctx context.Context,
	// A node, by name, whose VM may be removed or replaced with its disks, where
	// cluster.yaml says so; several times.
	// +optional
	allowReplace []string,
	// A layer, by name, that cluster.yaml does without by now (storage: none,
	// loadBalancer: none) and that may be removed; several times.
	// +optional
	removeLayer []string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	var flags []string
	for _, node := range allowReplace {
		flags = append(flags, "--allow-replace="+node)
	}
	for _, layer := range removeLayer {
		flags = append(flags, "--remove-layer="+layer)
	}
	return c.run(ctx, format, "create", flags...)
}

// Validate lists every mistake of the description at once.
func (c *Cluster) Validate(
	ctx context.Context,
) (_ string, err error) {
	defer ended("validate", FormatText, &err)
	return c.tell(ctx, "validate")
}

// Plan shows what create would change, and changes nothing.
//
// +cache="never"
func (c *Cluster) Plan(
	ctx context.Context,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return c.run(ctx, format, "plan")
}

// Status shows layers, nodes and gates as they are now.
//
// +cache="never"
func (c *Cluster) Status(
	ctx context.Context,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return c.run(ctx, format, "status")
}

// Outputs shows the endpoints, and how to get the kubeconfig.
func (c *Cluster) Outputs(
	ctx context.Context,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (_ string, err error) {
	defer ended("outputs", format, &err)
	return c.tell(ctx, "outputs", "--format="+string(format))
}

// Kubeconfig is an administrator's kubeconfig, asked from the control plane.
//
// +cache="never"
func (c *Cluster) Kubeconfig(
	ctx context.Context,
) (*dagger.Secret, error) {
	return c.secret(ctx, "kubeconfig")
}

// Talosconfig is an administrator's configuration for talosctl.
//
// +cache="never"
func (c *Cluster) Talosconfig(
	ctx context.Context,
) (*dagger.Secret, error) {
	return c.secret(ctx, "talosconfig")
}

// Timeline is the last run's time line, with its events and the tools' output.
//
// +cache="never"
func (c *Cluster) Timeline(
	ctx context.Context,
) (*dagger.Directory, error) {
	d, err := c.describe(ctx)
	if err != nil {
		return nil, err
	}
	container, err := d.stateful()
	if err != nil {
		return nil, err
	}
	folder, err := uncached(container).
		WithExec([]string{clusterProgram, "timeline", "--folder=" + d.folder, "--state=" + stateMount, "--out=" + made}).
		Directory(made).
		Sync(ctx)
	return folder, plain(err)
}

// Destroy removes the cluster, layer by layer in reverse order, and makes sure
// that nothing is left.
//
// +cache="never"
func (c *Cluster) Destroy(
	ctx context.Context,
	// The cluster's name once more: all that is stored in it is lost.
	confirm string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return c.run(ctx, format, "destroy", "--confirm="+confirm)
}

// run runs a command of castle-cluster on the cluster.
func (c *Cluster) run(ctx context.Context, format Format, verb string, args ...string) (_ string, err error) {
	defer ended(verb, format, &err)
	d, err := c.describe(ctx)
	if err != nil {
		return "", err
	}
	return d.command(ctx, append([]string{verb, "--format=" + string(format)}, args...)...)
}

// secret runs one that prints something secret, and is called after that.
func (c *Cluster) secret(ctx context.Context, name string) (*dagger.Secret, error) {
	d, err := c.describe(ctx)
	if err != nil {
		return nil, err
	}
	return d.secret(ctx, name, name)
}

// tell runs one that looks at the description alone.
func (c *Cluster) tell(ctx context.Context, args ...string) (string, error) {
	d, err := c.describe(ctx)
	if err != nil {
		return "", err
	}
	container, err := d.plain()
	if err != nil {
		return "", err
	}
	text, err := container.WithExec(append(append([]string{clusterProgram}, args...), "--folder="+d.folder)).Stdout(ctx)
	return text, plain(err)
}
