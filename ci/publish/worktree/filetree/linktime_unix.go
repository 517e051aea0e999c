//go:build unix

package filetree

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// setLinkTime sets the times of a symbolic link itself.
func setLinkTime(name string, when time.Time) error {
	stamp := unix.NsecToTimespec(when.UnixNano())
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{stamp, stamp}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "set time of", Path: name, Err: err}
	}
	return nil
}
