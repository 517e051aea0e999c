package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/mod/semver"
	"golang.org/x/sys/unix"
)

// Room for what a run keeps and writes meanwhile: states, their copies, records, temporary files. A create writes some tens of MiB.
const (
	leastRoom  = 32 * mib
	littleRoom = 1024 * mib
	mib        = 1 << 20
)

// version compares the engine with the one that castle was made for. One that is too old for the module has refused it before.
func version(_ context.Context, s *inspection) []finding {
	engine, ours := s.asked.Engine, s.asked.MadeFor
	switch {
	case engine == "":
		return ok("no engine runs this: castle-cluster was called by itself")
	case semver.IsValid(engine) && semver.MajorMinor(engine) != semver.MajorMinor(ours):
		return []finding{{Warning, fmt.Sprintf("Dagger %s, and castle was made for %s", engine, ours),
			fmt.Sprintf("where something fails that did not before, use an engine and a dagger command of %s", ours)}}
	}
	return ok("Dagger %s", engine)
}

// disk looks for room where states and records are kept.
func disk(_ context.Context, s *inspection) []finding {
	left, err := s.free(s.cluster.State)
	if err != nil {
		return notChecked("%v", err)
	}
	seen := fmt.Sprintf("%d MiB are free where states, records and temporary files are kept", left/mib)
	fix := "free some of the disk that the engine's cache is on; do not prune that cache where cluster.yaml has state.backend: local, since the states are in it"
	switch {
	case left < leastRoom:
		return []finding{{Failed, seen, fix}}
	case left < littleRoom:
		return []finding{{Warning, seen, fix}}
	}
	return ok("%d GiB are free where states, records and temporary files are kept", left/(1024*mib))
}

// free is the room for whoever is not root on the disk of a folder, or of the one that it will be made in.
func free(folder string) (uint64, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(folder, &stat)
	if parent := filepath.Dir(folder); errors.Is(err, fs.ErrNotExist) && parent != folder {
		return free(parent)
	}
	if err != nil {
		return 0, fmt.Errorf("the disk of %s: %w", folder, err)
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), nil
}
