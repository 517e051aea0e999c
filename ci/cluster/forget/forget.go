// Package forget empties a sandbox without destroying it layer by layer: its world, its states and its records. It refuses
// any other cluster.
package forget

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tazlab.net/castle/ci/base/filelock"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/run"
)

// Execute empties a sandbox: the world in its folder and the cluster's states and records. It is refused for any
// other cluster, and while a command or a world holds either, and where the states are another sandbox's of that
// name, unless its ID was typed as owner.
func Execute(ctx context.Context, cluster *run.Cluster, world, owner string) error {
	if err := cluster.Load(); err != nil {
		return err
	}
	if cluster.Description.Platform != config.PlatformSandbox {
		return fmt.Errorf("cluster %s is no sandbox: destroy it instead", cluster.Description.Name)
	}
	// Both folders are found by the same name, so that what is recorded in one holds for the other.
	if err := cluster.FolderIsOurs(ctx, owner); err != nil {
		return err
	}
	for _, folder := range []string{cluster.State, world} {
		unlock, err := filelock.Try(filepath.Join(folder, "lock"))
		if err != nil {
			return fmt.Errorf("the sandbox is in use: %w", err)
		}
		err = errors.Join(empty(folder), unlock())
		if err != nil {
			return err
		}
	}
	return nil
}

// empty removes what is in a folder, but not the folder, which may be a mount.
func empty(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, entry.Name())))
	}
	return err
}
