//go:build linux

package run

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/filelock"
	"tazlab.net/castle/ci/cluster/config"
)

// holdsWithin is how long a program may take to start.
const holdsWithin = 10 * time.Second

// heldBy has a program of that name, and with these arguments, hold the lock as the child of a castle that was killed.
func heldBy(t *testing.T, lock, program string, args ...string) *exec.Cmd {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(t.TempDir(), program)
	if err := os.WriteFile(named, data, 0o700); err != nil {
		t.Fatal(err)
	}
	// flock takes the lock, and becomes the program.
	command := exec.Command("flock", append([]string{"--nonblock", "--no-fork", lock, named}, args...)...)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for deadline := time.Now().Add(holdsWithin); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if holders, _ := filelock.Holders(lock); len(holders) > 0 && holders[0].Program == program {
			return command
		}
	}
	t.Fatalf("%s does not hold the lock", program)
	return nil
}

func TestWhatAKilledCastleLeftDoesNotHoldItsLock(t *testing.T) {
	for _, c := range []struct {
		program, seconds string
		held, ended      bool
	}{
		{program: "terraform-provider-kubectl_v2.2.0", seconds: "60", ended: true},
		{program: "tofu", seconds: "60", held: true},
		{program: "terragrunt", seconds: "60", held: true},
		{program: "tofu", seconds: "1"},                        // killed as well, and not gone yet
		{program: "castle-cluster", seconds: "60", held: true}, // a verb
	} {
		t.Run(c.program+" for "+c.seconds, func(t *testing.T) {
			t.Parallel()
			cluster := &Cluster{State: t.TempDir(), Description: &config.Cluster{Name: "blue"}}
			holder := heldBy(t, filepath.Join(cluster.State, "lock"), c.program, c.seconds)
			unlock, err := cluster.Lock()
			switch {
			case c.held && (err == nil || !strings.Contains(err.Error(), "cluster blue is locked by")):
				t.Error(err)
			case c.held:
			case err != nil:
				t.Error(err)
			default:
				if err := holder.Wait(); (err != nil) != c.ended {
					t.Errorf("it ended with %v", err)
				}
				if err := unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestARunIsNoHook(t *testing.T) {
	hook := filelock.Process{Program: "castle-cluster", Args: []string{"castle-cluster", "wait", "--timeout=30m", "gitops-store"}}
	verb := filelock.Process{Program: "castle-cluster", Args: []string{"castle-cluster", "create"}}
	if !orphan(hook) || castle(hook) || orphan(verb) || !castle(verb) {
		t.Errorf("a hook is left behind: %t; a verb: %t", orphan(hook), orphan(verb))
	}
	if _, err := lockLeft(filepath.Join(t.TempDir(), "none", "lock")); err == nil || errors.Is(err, filelock.ErrHeld) {
		t.Errorf("in no folder: %v", err)
	}
}
