package docker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tazlab.net/castle/ci/base/filelock"
)

// folder holds all files of one daemon. Its lock is held as long as the process that started the daemon lives, however
// that ends.
type folder struct {
	name   string
	unlock func() error
}

const folderPattern = "run-*"

func newFolder(parent string) (folder, error) {
	name, err := os.MkdirTemp(parent, folderPattern)
	if err != nil {
		return folder{}, err
	}
	return lockFolder(name)
}

func lockFolder(name string) (folder, error) {
	unlock, err := filelock.Try(name)
	return folder{name: name, unlock: unlock}, err
}

func (f folder) path(name string) string { return filepath.Join(f.name, name) }

// cgroup is the group above all of the daemon's containers.
func (f folder) cgroup() string { return "castle-dockertest-" + filepath.Base(f.name) }

// remove removes the folder, and the groups of containers that have ended.
func (f folder) remove() error {
	return errors.Join(removeCgroups(f.cgroup()), os.RemoveAll(f.name), f.unlock())
}

// removeAbandoned removes what tests left that were killed. Their daemons were killed with them.
func removeAbandoned(parent string) error {
	names, err := filepath.Glob(filepath.Join(parent, folderPattern))
	if err != nil {
		return err
	}
	for _, name := range names {
		abandoned, err := lockFolder(name)
		if errors.Is(err, filelock.ErrHeld) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := abandoned.remove(); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroups removes the groups of this name with those below them, in each hierarchy.
func removeCgroups(name string) error {
	var failed []error
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		groups, err := filepath.Glob(pattern + name)
		if err != nil {
			return err
		}
		for _, group := range groups {
			var below []string
			failed = append(failed, filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					below = append(below, path)
				}
				return err
			}))
			for i := len(below) - 1; i >= 0; i-- {
				failed = append(failed, unix.Rmdir(below[i]))
			}
		}
	}
	return errors.Join(failed...)
}
