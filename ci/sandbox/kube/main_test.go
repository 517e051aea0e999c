//go:build linux

package kube

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"tazlab.net/castle/ci/test/needs"
)

const insideVariable = "CASTLE_KUBE_TEST_INSIDE"

// TestMain runs the tests in a network and a mount namespace of their own.
func TestMain(m *testing.M) {
	if os.Getenv(doomedVariable) != "" {
		doomed()
	}
	if os.Getenv(insideVariable) != "" || os.Getuid() != 0 {
		os.Exit(m.Run())
	}
	inside := exec.Command("/proc/self/exe", os.Args[1:]...)
	inside.Env = append(os.Environ(), insideVariable+"=1")
	inside.Stdout, inside.Stderr = os.Stdout, os.Stderr
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := inside.Run(); err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			fmt.Fprintf(os.Stderr, "no namespaces can be made here: %v\n", err)
			os.Exit(m.Run())
		}
		os.Exit(1)
	}
}

// programs finds built tools, or ends the test.
func programs(t *testing.T, tools ...string) map[string]string {
	t.Helper()
	if os.Getenv(insideVariable) == "" {
		needs.Missing(t, "it needs root, to make namespaces")
	}
	return needs.Programs(t, tools...)
}
