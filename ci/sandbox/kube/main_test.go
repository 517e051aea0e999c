//go:build linux

package kube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"tazlab.net/castle/ci/gotool"
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
		if _, ended := err.(*exec.ExitError); !ended {
			fmt.Fprintf(os.Stderr, "no namespaces can be made here: %v\n", err)
			os.Exit(m.Run())
		}
		os.Exit(1)
	}
}

// cannotRun ends a test that lacks something. Where all tests are required, that is a failure.
func cannotRun(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CASTLE_REQUIRE_ALL") != "" {
		t.Fatalf("CASTLE_REQUIRE_ALL is set, and the test cannot run: "+format, args...)
	}
	t.Skipf("\n*** THE SANDBOX'S KUBERNETES WAS NOT TESTED ***\n"+format+"\n", args...)
}

// programs finds built tools, or ends the test.
func programs(t *testing.T, tools ...string) map[string]string {
	t.Helper()
	if os.Getenv(insideVariable) == "" {
		cannotRun(t, "it needs root, to make namespaces")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	builder := gotool.Builder{Cache: filepath.Join(cache, "castle", "tools")}
	found := map[string]string{}
	for _, tool := range tools {
		recipe, err := gotool.Load(tool)
		if err != nil {
			cannotRun(t, "%v", err)
		}
		for name := range recipe.Binaries {
			file := filepath.Join(builder.Dir(recipe), name)
			if _, err := os.Stat(file); err != nil {
				cannotRun(t, "%s is not built: castle tool %s", name, tool)
			}
			found[name] = file
		}
	}
	return found
}
