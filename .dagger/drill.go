package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"dagger/castle/internal/dagger"
)

// mix is what `castle-sandbox mix` chooses.
type mix struct {
	Faults      []string `json:"faults"`
	EndsCreate  bool     `json:"endsCreate"`
	EndsDestroy bool     `json:"endsDestroy"`
	Anew        bool     `json:"anew"`
}

// Drill has faults that are mixed at random strike destroy and create of the
// sandbox, and looks whether castle gets over them: what is meant to be outlasted
// has to be, and what ends a run leaves something that one more create, without
// the faults, makes a complete cluster of. It destroys what is in the sandbox.
//
// Every round is a row of the table that it prints. One whose faults refuse
// Flux's credentials takes ten minutes, for which the gate waits.
//
// +cache="never"
func (m *Castle) Drill(
	ctx context.Context,
	// The cluster, a sandbox.
	// +default="sandbox"
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// How many mixes are tried, one after the other.
	// +default=3
	rounds int,
	// The seed of the first: the same seed gives the same faults.
	// +default=1
	seed int,
	// How much of a homelab's time the sandbox takes: 1 is real time, 0 none.
	// +default="0.05"
	timeScale string,
) (_ string, err error) {
	defer ended("drill", FormatText, &err)
	calm := m.Cluster(cluster, repository, nil, timeScale, nil)
	d, err := calm.describe(ctx)
	if err != nil {
		return "", err
	}
	if !d.isSandbox() {
		return "", fmt.Errorf("cluster %s is no sandbox, and a drill destroys it", cluster)
	}
	if _, err := calm.Create(ctx, nil, nil, FormatText); err != nil {
		return "", err
	}
	table := "| seed | faults | destroy | create | afterwards |\n|---|---|---|---|---|\n"
	for i := range rounds {
		chosen, err := d.mix(ctx, seed+i)
		if err != nil {
			return "", err
		}
		row, err := calm.outlasts(ctx, m.Cluster(cluster, repository, nil, timeScale, chosen.Faults), chosen)
		table += fmt.Sprintf("| %d | %s | %s |\n", seed+i, strings.Join(chosen.Faults, ", "), row)
		if err != nil { // what is there now is not what the next round begins with
			return "", fmt.Errorf("%s\nseed %d: %w", table, seed+i, err)
		}
	}
	return table, nil
}

// mix asks the proving ground for the faults of a seed.
func (d *described) mix(ctx context.Context, seed int) (*mix, error) {
	container, err := d.castle.container(sandboxProgram)
	if err != nil {
		return nil, err
	}
	text, err := container.
		With(d.mounted).
		WithExec([]string{sandboxProgram, "mix", "--cluster=" + d.folder, fmt.Sprintf("--seed=%d", seed)}).
		Stdout(ctx)
	if err != nil {
		return nil, plain(err)
	}
	chosen := &mix{}
	return chosen, json.Unmarshal([]byte(text), chosen)
}

// outlasts destroys and creates the cluster c in the storm, which is the same one with faults, and where that ended a call as it
// must, once more without. The row says how long each took.
func (c *Cluster) outlasts(ctx context.Context, storm *Cluster, chosen *mix) (row string, err error) {
	var destroy, create, afterwards string
	took := func(into *string, ends bool, call func() (string, error)) bool {
		began := time.Now()
		_, failed := call()
		*into = time.Since(began).Round(time.Second).String()
		if failed != nil {
			*into = "failed after " + *into
		}
		switch {
		case ends && failed == nil:
			err = errors.New("a call ended well that these faults end")
		case !ends && failed != nil:
			err = failed
		}
		return failed == nil
	}
	destroyed := took(&destroy, chosen.EndsDestroy, func() (string, error) { return storm.Destroy(ctx, c.Name, FormatText) })
	created := false
	if err == nil && destroyed {
		created = took(&create, chosen.EndsCreate, func() (string, error) { return storm.Create(ctx, nil, nil, FormatText) })
	}
	if err == nil && !created {
		took(&afterwards, false, func() (string, error) {
			if !destroyed || chosen.Anew {
				if _, err := c.Destroy(ctx, c.Name, FormatText); err != nil {
					return "", err
				}
			}
			return c.Create(ctx, nil, nil, FormatText)
		})
	}
	return strings.Join([]string{destroy, create, afterwards}, " | "), err
}
