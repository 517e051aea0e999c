//go:build linux

// Command castle-node is what a real Talos node of the proving ground has beside Talos: it makes a machine's first process of Talos's
// machined, stands before runc where containers have to fit the machine, and stands in for the kubelet, for a pod's first process and for a site. It is
// small and static, since it goes into the nodes' root file system and into images. This package holds commands only.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"tazlab.net/castle/ci/sandbox/talosnodes/inside"
)

// init keeps main on the thread that enters a cgroup namespace and becomes machined.
func init() { runtime.LockOSThread() }

func main() {
	if err := run(filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "castle-node: %v\n", err)
		os.Exit(1)
	}
}

// run goes by the name that the program is called by, as others call runc and the kubelet.
func run(name string, args []string) error {
	switch name {
	case inside.RuncName:
		return inside.Runc(args)
	case inside.KubeletName:
		return inside.Kubelet()
	case inside.PauseName:
		return inside.Pause()
	case inside.PageName:
		return inside.Page()
	default:
		return inside.Boot(os.Stdin)
	}
}
