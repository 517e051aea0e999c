//go:build linux

package docker

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/setup/debian"
	"tazlab.net/castle/ci/test/needs"
)

// newDaemon starts a daemon for one test, and makes docker and whatever calls it talk to that one.
func newDaemon(t *testing.T) *Daemon {
	t.Helper()
	needs.Root(t, "to start a Docker daemon in namespaces of its own")
	packages := Packages
	if _, err := exec.LookPath("dockerd"); err == nil {
		packages = packages[1:]
	}
	if err := debian.Install(t.Context(), packages...); err != nil {
		needs.Missing(t, "%v", err)
	}
	if _, err := exec.LookPath("docker"); err != nil {
		// Debian has put the client into a package of its own.
		if err := debian.Install(t.Context(), "docker-cli"); err != nil {
			needs.Missing(t, "%v", err)
		}
	}
	parent := filepath.Join(needs.Cache(t), "dockertest")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	daemon, err := Start(t.Context(), parent)
	if refused := (*CannotStartError)(nil); errors.As(err, &refused) {
		// No set-up helps against a machine's refusal, so that it is skipped even where all tests are required.
		t.Skipf("\n*** THE NORMAL PATH, DOCKER AND THE DAGGER CLI, WAS NOT TESTED ***\n%v\n", refused)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		start := time.Now()
		if err := daemon.Stop(); err != nil {
			t.Errorf("stop the Docker daemon: %v", err)
		}
		took(t, "stop the Docker daemon", start)
	})
	took(t, "start the Docker daemon", start)
	t.Setenv("DOCKER_HOST", daemon.Host())
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	return daemon
}

func took(t *testing.T, what string, start time.Time) {
	t.Helper()
	t.Logf("%6.1f s  %s", time.Since(start).Seconds(), what)
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}
