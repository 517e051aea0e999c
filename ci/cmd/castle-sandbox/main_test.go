//go:build linux

package main

import (
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"tazlab.net/castle/ci/test/needs"
)

// TestTheProcessStaysInItsNamespaces whatever its threads do. Without the thread that main keeps, one of the first few is the process's own.
func TestTheProcessStaysInItsNamespaces(t *testing.T) {
	needs.Root(t, "a thread enters a network of its own")
	const own = "/proc/self/ns/net" // that of the first thread
	before, err := os.Readlink(own)
	if err != nil {
		t.Fatal(err)
	}
	var threads sync.WaitGroup
	for range 200 {
		threads.Go(func() {
			entered := make(chan error)
			go func() {
				runtime.LockOSThread() // never unlocked, as where a pod's program is started
				entered <- unix.Unshare(unix.CLONE_NEWNET)
			}()
			if err := <-entered; err != nil {
				t.Error(err)
			}
		})
	}
	threads.Wait()
	if after, err := os.Readlink(own); err != nil || after != before {
		t.Errorf("the process was in %s and is in %s, %v", before, after, err)
	}
}
