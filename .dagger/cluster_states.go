package main

import (
	"context"

	"dagger/castle/internal/dagger"
)

// StateList shows the layers' states, their copies, and who holds a lock.
//
// +cache="never"
func (c *Cluster) StateList(
	ctx context.Context,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return c.run(ctx, format, "state-list")
}

// StateUnlock removes a lock in the store of the states whose holder is dead.
//
// +cache="never"
func (c *Cluster) StateUnlock(
	ctx context.Context,
	// The lock's ID, as the refused call or state-list tells it: whoever holds it
	// must not run any more.
	confirm string,
) (string, error) {
	return c.keep(ctx, "state-unlock", "--confirm="+confirm)
}

// StateRestore goes back to a copy of a layer's state, which becomes a copy
// itself.
//
// +cache="never"
func (c *Cluster) StateRestore(
	ctx context.Context,
	// The layer, such as platform.
	layer string,
	// The copy, by its time as state-list shows it.
	copyTime string,
	// The cluster's name once more: what the state knows since then, it forgets.
	confirm string,
) (string, error) {
	return c.keep(ctx, "state-restore", "--layer="+layer, "--copy-time="+copyTime, "--confirm="+confirm)
}

// StateShow shows what a layer's state holds.
//
// +cache="never"
func (c *Cluster) StateShow(
	ctx context.Context,
	// The layer, such as platform.
	layer string,
	// How the result is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	return c.run(ctx, format, "state-show", "--layer="+layer)
}

// StateExport is an archive of all states, which the cluster's age key opens.
//
// +cache="never"
func (c *Cluster) StateExport(
	ctx context.Context,
	// The public key (age1…) of somebody else who may open it; several times.
	// +optional
	recipient []string,
) (_ *dagger.File, err error) {
	defer ended("state-export", FormatText, &err)
	d, err := c.describe(ctx)
	if err != nil {
		return nil, err
	}
	container, err := d.container(ctx)
	if err != nil {
		return nil, err
	}
	const archive = "/castle-states.age"
	args := []string{"state-export", "--out=" + archive}
	for _, key := range recipient {
		args = append(args, "--recipient="+key)
	}
	file, err := container.WithExec(d.args(args...), withoutInit).File(archive).Sync(ctx)
	return file, plain(err)
}

// StateImport takes in the states of an archive that state-export made of this
// cluster.
//
// +cache="never"
func (c *Cluster) StateImport(
	ctx context.Context,
	// The archive.
	archive *dagger.File,
	// The cluster's name once more.
	confirm string,
	// Replace states that differ; they become copies.
	// +optional
	replace bool,
) (_ string, err error) {
	defer ended("state-import", FormatText, &err)
	d, err := c.describe(ctx)
	if err != nil {
		return "", err
	}
	container, err := d.container(ctx)
	if err != nil {
		return "", err
	}
	const given = "/castle-states.age"
	args := []string{"state-import", "--archive=" + given, "--confirm=" + confirm}
	if replace {
		args = append(args, "--replace")
	}
	text, err := container.WithMountedFile(given, archive).WithExec(d.args(args...), withoutInit).Stdout(ctx)
	return text, plain(err)
}

// StateMigrate moves the states to where cluster.yaml has them now.
//
// +cache="never"
func (c *Cluster) StateMigrate(
	ctx context.Context,
	// Where they are: local, or s3://BUCKET?endpoint=URL&region=NAME.
	from string,
	// The cluster's name once more.
	confirm string,
) (string, error) {
	return c.keep(ctx, "state-migrate", "--from="+from, "--confirm="+confirm)
}

// keep runs a command of castle-cluster that changes the states alone.
func (c *Cluster) keep(ctx context.Context, verb string, args ...string) (_ string, err error) {
	defer ended(verb, FormatText, &err)
	d, err := c.describe(ctx)
	if err != nil {
		return "", err
	}
	return d.command(ctx, append([]string{verb}, args...)...)
}
