//go:build linux

package inside

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// PauseName is what the image of a pod's first process starts.
const PauseName = "pause"

// Pause holds a pod's namespaces until it is ended, and waits for processes that nobody waits for, as build/pause/linux/pause.c of Kubernetes
// 1.36 does.
func Pause() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGCHLD)
	for one := range signals {
		if one != unix.SIGCHLD {
			break
		}
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
	}
	return nil
}
