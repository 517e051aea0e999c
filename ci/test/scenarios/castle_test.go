//go:build linux

package scenarios

import (
	"bytes"
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tazlab.net/castle/ci/test/tell"
)

// called is one call of castle.
type called struct {
	world          *world
	args           string
	command        *exec.Cmd
	stdout, stderr bytes.Buffer
	done           chan struct{}
	err            error
	began          time.Time
	took           time.Duration
}

// castle calls a command on the cluster and waits for its end.
func (w *world) castle(args ...string) *called {
	w.t.Helper()
	c := w.start(w.live, nil, args...)
	c.wait(cmp.Or(w.patience, patience))
	return c
}

// start starts a command on the cluster whose folder is given.
func (w *world) start(live string, environment []string, args ...string) *called {
	w.t.Helper()
	key, err := os.ReadFile(filepath.Join(live, "age.key"))
	if err != nil {
		w.t.Fatal(err)
	}
	full := []string{"-t", strconv.Itoa(w.process.Process.Pid), "-n", filepath.Join(w.kit.path, "castle-cluster")}
	full = append(append(full, args...), "--folder="+live, "--layers="+filepath.Join(live, "..", ".."), "--state="+w.state(), "--charts="+w.kit.charts, "--scaled")
	full = append(full, w.flags...)
	c := &called{world: w, args: strings.Join(args, " "), command: exec.Command("nsenter", full...), done: make(chan struct{}), began: time.Now()}
	c.command.Env = append([]string{
		"PATH=" + w.kit.path + ":" + os.Getenv("PATH"), "HOME=" + w.temp(), "TMPDIR=" + w.temp(),
		"HTTP_PROXY=" + proxy, "HTTPS_PROXY=" + proxy, "SOPS_AGE_KEY=" + string(key),
	}, environment...)
	c.command.Stdout, c.command.Stderr = &c.stdout, &c.stderr
	c.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Children that outlive a killed castle hold its output open.
	c.command.WaitDelay = 5 * time.Second
	if err := c.command.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		c.err = c.command.Wait()
		c.took = time.Since(c.began)
		close(c.done)
	}()
	w.t.Cleanup(c.kill)
	return c
}

func (c *called) wait(limit time.Duration) {
	c.world.t.Helper()
	select {
	case <-c.done:
	case <-time.After(limit):
		c.world.t.Errorf("castle %s did not end within %s", c.args, limit)
		c.kill()
	}
	c.world.mutex.Lock()
	c.world.shown = append(c.world.shown, c.stdout.String(), c.stderr.String())
	c.world.mutex.Unlock()
	c.world.t.Logf("castle %s: %s, %v\n%s", c.args, c.took.Round(100*time.Millisecond), c.err, c.stderr.String())
}

// verb is what castle was asked for.
func (c *called) verb() string {
	verb, _, _ := strings.Cut(c.args, " ")
	return verb
}

// interrupt is Ctrl-C.
func (c *called) interrupt() {
	c.world.t.Helper()
	tell.Fault(c.world.t, "Ctrl-C during %s", c.verb())
	_ = syscall.Kill(c.command.Process.Pid, syscall.SIGINT)
}

// kill takes castle and all that it started away at once, as the end of its container does.
func (c *called) kill() {
	c.world.t.Helper()
	select {
	case <-c.done:
		return
	default:
	}
	tell.Fault(c.world.t, "SIGKILL during %s, to castle and all that it started", c.verb())
	// Nobody is to start anything between the look at who there is and the kill.
	all := []int{c.command.Process.Pid}
	for stopped := 0; stopped < len(all); all = append(all[:1], descendants(c.command.Process.Pid)...) {
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		stopped = len(all)
	}
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-c.done
}

// changing are the verbs that leave a cluster as it should be, or none.
var changing = []string{"create", "destroy", "nuclear-wipe", "remove-node"}

// succeeds fails the test where the command did not.
func (c *called) succeeds() *called {
	c.world.t.Helper()
	if c.err != nil {
		c.world.t.Fatalf("castle %s: %v\n%s%s", c.args, c.err, c.stdout.String(), c.stderr.String())
	}
	if slices.Contains(changing, c.verb()) {
		tell.Success(c.world.t, c.verb(), c.took)
	}
	return c
}

// failsWith fails the test where the command did not fail, or said something else.
func (c *called) failsWith(texts ...string) *called {
	c.world.t.Helper()
	said := c.stderr.String()
	if c.err == nil {
		c.world.t.Fatalf("castle %s succeeded:\n%s%s", c.args, c.stdout.String(), said)
	}
	for _, text := range texts {
		if !strings.Contains(said, text) {
			c.world.t.Errorf("castle %s does not say %q:\n%s", c.args, text, said)
		}
	}
	tell.Observation(c.world.t, c.took, "%s says: %s", c.verb(), strings.Join(texts, " … "))
	return c
}

// unsealed is what a command prints that is printed under a key only.
func (w *world) unsealed(command string) []byte {
	w.t.Helper()
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		w.t.Fatal(err)
	}
	c := w.start(w.live, []string{"CASTLE_SEAL_KEY=" + base64.StdEncoding.EncodeToString(key)}, command)
	c.wait(time.Minute)
	c.succeeds()
	sealed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(c.stdout.String()))
	if err != nil {
		w.t.Fatalf("%s is not printed in base64: %v", command, err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		w.t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], nil)
	if err != nil {
		w.t.Fatalf("%s is not sealed with AES-256-GCM under the key: %v", command, err)
	}
	return text
}

// descendants are the processes below one, children first.
func descendants(pid int) []int {
	children := map[int][]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		id, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		if err != nil {
			continue
		}
		// "pid (name) state parent …"; the name may hold anything.
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], id)
		}
	}
	var all []int
	for next := children[pid]; len(next) > 0; {
		all = append(all, next...)
		var below []int
		for _, id := range next {
			below = append(below, children[id]...)
		}
		next = below
	}
	return all
}
