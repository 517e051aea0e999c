//go:build linux

package scenarios

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/base/filelock"
)

// How many interruptions are tried, and the seed of the first. `make interruptions` sets them.
const (
	variableInterruptions = "CASTLE_INTERRUPTIONS"
	variableSeed          = "CASTLE_INTERRUPTIONS_SEED"
)

// A few for which there is time with all other tests: the last four ways, which leave most behind.
const (
	fewInterruptions = 4
	fewSeed          = 6
)

// interruption is a way in which a run of create ends before its time.
type interruption struct {
	name string
	inS3 bool // where the states are; else in a folder
	// strike interrupts the run, and returns what has to be put right before the next create.
	strike func(w *world, c *called, random *rand.Rand) (mend func())
}

// interruptions are all ways. What a kill hits that hits "one of" is chosen at random among those that run at that instant; where
// none does, nothing happens, and the run must end well.
var interruptions = []interruption{
	{"castle and all that it started", false, func(_ *world, c *called, _ *rand.Rand) func() { c.kill(); return nil }},
	{"castle alone", false, func(_ *world, c *called, _ *rand.Rand) func() { c.killAlone(); return nil }},
	{"terragrunt", false, killOneOf("terragrunt")},
	{"one of OpenTofu's processes", false, killOneOf("tofu")},
	{"one of the providers", false, killOneOf("terraform-provider-")},
	{"one of castle's hooks", false, killOneOf("castle-cluster")},
	{"the world, by a power cut", false, func(w *world, _ *called, _ *rand.Rand) func() { w.off(syscall.SIGKILL); w.on(); return nil }},
	{"a full disk", false, func(w *world, _ *called, _ *rand.Rand) func() { return w.fillDisk() }},
	{"castle and all that it started, states in S3", true, func(_ *world, c *called, _ *rand.Rand) func() { c.kill(); return nil }},
	{"S3 away", true, func(w *world, _ *called, _ *rand.Rand) func() {
		w.store.away.Store(true)
		return func() { w.store.away.Store(false) }
	}},
}

func killOneOf(name string) func(*world, *called, *rand.Rand) func() {
	return func(_ *world, c *called, random *rand.Rand) func() {
		var running []int
		for _, pid := range descendants(c.command.Process.Pid) {
			program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
			if err == nil && strings.HasPrefix(filepath.Base(program), name) {
				running = append(running, pid)
			}
		}
		if len(running) > 0 {
			_ = syscall.Kill(running[random.IntN(len(running))], syscall.SIGKILL)
		}
		return nil
	}
}

// TestCreateGoesOnAfterAnyInterruption interrupts create at random instants of its whole run, each time in a new world and in the
// next of the ways. One create afterwards has to end with the same cluster that it would have made anyway.
func TestCreateGoesOnAfterAnyInterruption(t *testing.T) {
	t.Parallel()
	tools(t)
	number := func(name string, otherwise int) int {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	count, seed := number(variableInterruptions, fewInterruptions), number(variableSeed, fewSeed)

	// How long a run takes on this machine, today, beside what else it does.
	whole := wholeCreate(t)
	for trial := seed; trial < seed+count; trial++ {
		way := interruptions[trial%len(interruptions)]
		random := rand.New(rand.NewPCG(uint64(trial), 0))
		instant := time.Duration(random.Float64() * float64(whole))
		// A short name: it is part of the folder of the providers' sockets, whose paths have a length.
		t.Run(strconv.Itoa(trial), func(t *testing.T) {
			t.Parallel()
			goesOnAfter(t, trial, way, instant, whole, random)
		})
	}
}

// wholeCreate is how long a create takes that nothing interrupts.
func wholeCreate(t *testing.T) time.Duration {
	w := newWorld(t, "none", "0")
	w.on()
	took := w.castle("create").succeeds().took
	w.off(syscall.SIGTERM)
	return took
}

func goesOnAfter(t *testing.T, trial int, way interruption, instant, whole time.Duration, random *rand.Rand) {
	w := newWorld(t, "none", "0")
	w.ownDisk()
	if way.inS3 {
		w.keepStatesInS3()
	}
	w.on()
	if way.inS3 {
		w.store = w.serveS3()
	}
	c := w.start(w.live, nil, "create")
	select {
	case <-c.done:
	case <-time.After(instant):
	}
	at := w.reached()
	mend := way.strike(w, c, random)
	c.endsWithin(45 * time.Second)
	if mend != nil {
		mend()
	}
	t.Logf("%s, struck after %s: %s", way.name, instant.Round(100*time.Millisecond), at)
	pki, before := w.infisical()["TALOS_SECRETS"], w.vms()
	made := w.event(ends("layer", "platform", "")).Result == "ok"

	next := w.start(w.live, nil, "create")
	key := next.overhear()
	next.wait(5 * time.Minute)
	next.succeeds()
	w.hasExactlyItsVMs()
	if after := w.vms(); made && !slices.Equal(after, before) {
		t.Errorf("the machines were done: Proxmox had %+v and has %+v", before, after)
	}
	if after := w.infisical()["TALOS_SECRETS"]; after == "" || pki != "" && after != pki {
		t.Error("the cluster got another PKI")
	}
	w.hasAQuorum(w.unsealed("talosconfig"))
	k := w.kubernetes(w.unsealed("kubeconfig"))
	k.hasNodes()
	k.hasNoUnfinishedRelease()
	w.isWell()
	plan := w.castle("plan").succeeds().stdout.String()
	if strings.Count(plan, "No changes.") != 6 || strings.Contains(plan, "will be") || strings.Contains(plan, "must be") {
		t.Errorf("the states are not equal to the world:\n%s", plan)
	}
	if way.inS3 {
		if left := w.store.locks(w); len(left) > 0 {
			t.Errorf("it is still locked: %v", left)
		}
	}
	w.leaksNothing(key)
	t.Logf("| %d | %s | %s of %s, %s | %s | %s |", trial, way.name, instant.Round(100*time.Millisecond), whole.Round(100*time.Millisecond), at, outcome(c), next.took.Round(100*time.Millisecond))
}

// outcome is how the interrupted run ended.
func outcome(c *called) string {
	switch {
	case c.err == nil:
		return "complete"
	case strings.Contains(c.err.Error(), "killed"):
		return "killed"
	default:
		return "failed"
	}
}

// reached is what the run was at: the layers that had begun and not ended.
func (w *world) reached() string {
	if w.lastRun() == "" {
		return "before its record"
	}
	var open []string
	for _, layer := range []string{"secrets", "platform", "engine", "networking", "storage", "gitops"} {
		if w.started(layer) && w.layerResult(layer) == "" {
			open = append(open, layer)
		}
	}
	return "in " + cmp.Or(strings.Join(open, ", "), "no layer")
}

// killAlone kills castle, and waits until all that it had started, which go on without it, have given its lock free.
func (c *called) killAlone() {
	_ = syscall.Kill(c.command.Process.Pid, syscall.SIGKILL)
	c.world.until(5*time.Minute, "the lock is free", func() (string, bool) {
		unlock, err := filelock.Try(filepath.Join(c.world.state(), "lock"))
		if err != nil {
			return err.Error(), false
		}
		return "", unlock() == nil
	})
}

// endsWithin waits for the end of a run; one that goes on for too long is interrupted, as a person would. After a power cut that
// is always so: castle is left in a network that is no more.
func (c *called) endsWithin(limit time.Duration) {
	select {
	case <-c.done:
	case <-time.After(limit):
		c.interrupt()
	}
	c.wait(time.Minute)
}

// diskSize holds what a create writes, several times over.
const diskSize = 256 << 20

// ownDisk gives castle's files a disk of their own, which can be full. It comes before anything is written.
func (w *world) ownDisk() {
	w.t.Helper()
	w.disk = filepath.Join(w.folder, "disk")
	if err := os.Mkdir(w.disk, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", w.disk, "tmpfs", 0, fmt.Sprintf("size=%d", diskSize)); err != nil {
		w.t.Fatalf("a disk of its own: %v", err)
	}
	w.t.Cleanup(func() {
		if err := unix.Unmount(w.disk, unix.MNT_DETACH); err != nil {
			w.t.Error(err)
		}
	})
	w.linkPlugins()
}

// fillDisk leaves no byte free until it is mended.
func (w *world) fillDisk() (mend func()) {
	w.t.Helper()
	name := filepath.Join(w.disk, "filler")
	file, err := os.Create(name)
	if err != nil {
		w.t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		if _, err := file.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	if err := file.Close(); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			w.t.Fatal(err)
		}
	}
}

// hasNoUnfinishedRelease fails the test where a record of Helm says that something is still going on.
func (k kube) hasNoUnfinishedRelease() {
	k.world.t.Helper()
	list, err := k.typed.CoreV1().Secrets("").List(k.world.t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil {
		k.world.t.Fatal(err)
	}
	for _, record := range list.Items {
		if record.Labels["status"] != "deployed" && record.Labels["status"] != "superseded" {
			k.world.t.Errorf("Helm's record %s/%s says %s", record.Namespace, record.Name, record.Labels["status"])
		}
	}
}
