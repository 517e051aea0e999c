//go:build linux

package docker

import (
	"archive/tar"
	"bufio"
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/test/needs"
)

// parentVariable tells a copy of this test binary, which is to be killed, where to start a daemon.
const parentVariable = "CASTLE_DOCKERTEST_PARENT"

func TestADaemonLeavesNothingBehindAndTheMachinesNetworkAlone(t *testing.T) {
	needs.Most(t)
	endToEnd(t)
	_, before := net.InterfaceByName("docker0")
	var folder folder
	t.Run("while it runs", func(t *testing.T) {
		daemon := newDaemon(t)
		folder = daemon.folder
		docker(t, "network", "create", "some")
		if _, during := net.InterfaceByName("docker0"); (before == nil) != (during == nil) {
			t.Error("Docker's bridge stands in the machine's own network")
		}
		if processesOf(t, folder) == 0 {
			t.Error("no process was found that belongs to the daemon")
		}
		runContainer(t)
		if len(cgroupsOf(t, folder)) == 0 {
			t.Error("no control group was found that belongs to the daemon")
		}
	})
	if folder.name == "" {
		t.Skip("no daemon was started")
	}
	if n := processesOf(t, folder); n > 0 {
		t.Errorf("%d processes are left", n)
	}
	if groups := cgroupsOf(t, folder); len(groups) > 0 {
		t.Errorf("left: %v", groups)
	}
	if _, err := os.Stat(folder.name); !os.IsNotExist(err) {
		t.Errorf("%s is left (%v)", folder.name, err)
	}
}

func TestAKilledTestTakesItsDaemonAlong(t *testing.T) {
	needs.Most(t)
	endToEnd(t)
	if parent := os.Getenv(parentVariable); parent != "" {
		daemon, err := Start(t.Context(), parent)
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString(daemon.name + "\n")
		select {} // until it is killed
	}
	newDaemon(t) // skips where none can be started
	parent, err := os.MkdirTemp(filepath.Join(needs.Cache(t), "dockertest"), "killed-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.timeout=2m")
	command.Env = append(os.Environ(), parentVariable+"="+parent)
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	name, readErr := bufio.NewReader(stdout).ReadString('\n')
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // it was killed
	if readErr != nil {
		t.Fatalf("the copy started no daemon: %q, %v", name, readErr)
	}
	killed := folder{name: strings.TrimSpace(name)}
	deadline := time.Now().Add(10 * time.Second)
	for processesOf(t, killed) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%d processes are left after 10 s", processesOf(t, killed))
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := removeAbandoned(parent); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed.name); !os.IsNotExist(err) {
		t.Errorf("%s is left (%v)", killed.name, err)
	}
}

// runContainer keeps a container with this machine's programs running.
func runContainer(t *testing.T) {
	t.Helper()
	var root bytes.Buffer
	writer := tar.NewWriter(&root)
	for _, name := range []string{"bin", "lib", "lib64"} {
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "usr/" + name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	image := exec.CommandContext(t.Context(), "docker", "import", "-", "links")
	image.Stdin = &root
	if out, err := image.CombinedOutput(); err != nil {
		t.Fatalf("docker import: %v\n%s", err, out)
	}
	docker(t, "run", "--detach", "--privileged", "--volume=/usr:/usr:ro", "links", "sleep", "600")
}

// processesOf counts the processes that name a daemon's folder.
func processesOf(t *testing.T, f folder) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), f.name) {
			n++
		}
	}
	return n
}

func cgroupsOf(t *testing.T, f folder) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		groups, err := filepath.Glob(pattern + f.cgroup())
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, groups...)
	}
	return found
}
