//go:build linux

package scenarios

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/filelock"
	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/tell"
)

// How many interruptions are tried, and the seed of the first. `make interruptions` sets them.
const (
	variableInterruptions = "CASTLE_INTERRUPTIONS"
	variableSeed          = "CASTLE_INTERRUPTIONS_SEED"
	variableOnly          = "CASTLE_INTERRUPTIONS_ONLY" // "out": create is left in peace; "create": the ways out are
)

// A few for which there is time with all other tests: the last four ways, which leave most behind.
const (
	fewInterruptions = 4
	fewSeed          = 6
	fewWaysOut       = 2 // so many of them interrupt a way out as well
)

// interruption is a way in which a run ends before its time.
type interruption struct {
	name string
	inS3 bool // where the states are; else in a folder
	// tool is the program of which one process is killed, chosen at random among those that run; where none does at that instant, as soon
	// as one does. Only a run with layers starts any.
	tool string
	// strike interrupts the run in any other way, and returns what has to be put right before the next.
	strike func(w *world, c *called) (mend func())
}

// interruptions are all ways.
var interruptions = []interruption{
	{name: "castle and all that it started", strike: func(_ *world, c *called) func() { c.kill(); return nil }},
	{name: "castle alone", strike: func(_ *world, c *called) func() { c.killAlone(); return nil }},
	{name: "terragrunt", tool: "terragrunt"},
	{name: "one of OpenTofu's processes", tool: "tofu"},
	{name: "one of the providers", tool: "terraform-provider-"},
	{name: "one of castle's hooks", tool: "castle-cluster"},
	{name: "the world, by a power cut", strike: func(w *world, _ *called) func() { w.off(syscall.SIGKILL); w.on(); return nil }},
	{name: "a full disk", strike: func(w *world, _ *called) func() { return w.fillDisk() }},
	{name: "castle and all that it started, states in S3", inS3: true, strike: func(_ *world, c *called) func() { c.kill(); return nil }},
	{name: "S3 away", inS3: true, strike: func(w *world, _ *called) func() {
		w.store.away.Store(true)
		return func() { w.store.away.Store(false) }
	}},
}

// victim is one of the run's processes of a program, as soon as there is any; 0 when the run ended before.
func (c *called) victim(program string, random *rand.Rand) int {
	for {
		var running []int
		for _, pid := range descendants(c.command.Process.Pid) {
			path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
			if err == nil && strings.HasPrefix(filepath.Base(path), program) {
				running = append(running, pid)
			}
		}
		if len(running) > 0 {
			return running[random.IntN(len(running))]
		}
		select {
		case <-c.done:
			return 0
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// waysOut are the verbs that end a cluster, and how each is called.
var waysOut = [][]string{{"destroy", "--confirm=sandbox"}, {"nuclear-wipe", "--confirm=sandbox"}}

// trial is one world, in which create is interrupted and then one of the ways out.
type trial struct {
	number int // its seed, too
	way    interruption
	out    []string // nil: create is all that is tried
	peace  bool     // create is not interrupted
	whole  map[string]time.Duration
	random *rand.Rand
}

// newTrial chooses by the trial's number alone, so that each way meets each way out in turn. A wipe runs no layers.
func newTrial(number int, whole map[string]time.Duration, out bool) *trial {
	p := &trial{number: number, way: interruptions[number%len(interruptions)], whole: whole, random: rand.New(rand.NewPCG(uint64(number), 0))}
	switch cycle := number / len(interruptions); {
	case !out:
	case p.way.tool != "":
		p.out = waysOut[0]
	default:
		p.out = waysOut[(cycle+number)%len(waysOut)]
	}
	return p
}

// TestARunGoesOnAfterAnyInterruption interrupts create at random instants of its whole run, each time in a new world and in the next of
// the ways. One create afterwards has to end with the same cluster that it would have made anyway. Then it interrupts destroy or
// nuclear-wipe in that world, and one more call has to leave nothing of the cluster, and all that is somebody else's.
func TestARunGoesOnAfterAnyInterruption(t *testing.T) {
	t.Parallel()
	tools(t)
	count, seed := number(t, variableInterruptions, fewInterruptions), number(t, variableSeed, fewSeed)
	out, atOnce := count, min(count, flag.Lookup("test.parallel").Value.(flag.Getter).Get().(int))
	if os.Getenv(variableInterruptions) == "" {
		out, atOnce = fewWaysOut, 1
	}
	only := os.Getenv(variableOnly)
	switch only {
	case "", "out":
	case "create":
		out = 0
	default:
		t.Fatalf("%s=%s: want out or create", variableOnly, only)
	}

	// As many at once as there are trials: a run that has the machine to itself ends sooner, and no strike would come late in a trial.
	var mutex sync.Mutex
	whole := map[string]time.Duration{}
	measured := t.Run("whole", func(t *testing.T) {
		for i := range atOnce {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for verb, took := range wholeRuns(t) {
					mutex.Lock()
					whole[verb] = max(whole[verb], took)
					mutex.Unlock()
				}
			})
		}
	})
	if !measured {
		return
	}
	for i := range count {
		p := newTrial(seed+i, whole, i < out)
		p.peace = only == "out"
		// A short name: it is part of the folder of the providers' sockets, whose paths have a length.
		t.Run(strconv.Itoa(p.number), func(t *testing.T) {
			t.Parallel()
			p.play(t)
		})
	}
}

// number is what a variable says, or another one.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(variable), strconv.Itoa(otherwise)))
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// wholeRuns are how long the verbs take that nothing interrupts, on this machine, today, beside what else it does.
func wholeRuns(t *testing.T) map[string]time.Duration {
	w := newWorld(t, "none", "0")
	w.on()
	whole := map[string]time.Duration{}
	for _, verb := range append([][]string{{"create"}}, waysOut[0]) {
		whole[verb[0]] = w.castle(verb...).succeeds().took
	}
	// What runs on the machines is no matter to a wipe.
	again := w.start(w.copyLive("platform", justPlatform()...), nil, "create")
	again.wait(5 * time.Minute)
	again.succeeds()
	whole[waysOut[1][0]] = w.castle(waysOut[1]...).succeeds().took
	w.off(syscall.SIGTERM)
	return whole
}

// interrupt starts a verb, strikes at a random instant of the time that it takes whole, and puts right what the interruption itself
// has broken when what is left of the run has ended. row is what a table says of it.
func (p *trial) interrupt(w *world, verb ...string) (row string) {
	whole, before := p.whole[verb[0]], w.lastRun()
	instant := time.Duration(p.random.Float64() * float64(whole))
	c := w.start(w.live, nil, verb...)
	select {
	case <-c.done:
	case <-time.After(instant):
	}
	victim := 0
	if p.way.tool != "" {
		victim = c.victim(p.way.tool, p.random)
	}
	at := w.reached(before)
	instant = time.Since(c.began)
	tell.Fault(w.t, "%s, %.1f s after its start, struck: %s", verb[0], instant.Seconds(), p.way.name)
	var mend func()
	switch {
	case p.way.tool == "":
		mend = p.way.strike(w, c)
	case victim != 0:
		_ = syscall.Kill(victim, syscall.SIGKILL)
	}
	c.endsWithin(45 * time.Second)
	if mend != nil {
		mend()
	}
	w.t.Logf("%s: %s, struck after %s: %s", verb[0], p.way.name, instant, at)
	return fmt.Sprintf("| %d | %s | %s | %.2f s of %.2f s, %s | %s |", p.number, verb[0], p.way.name, instant.Seconds(), whole.Seconds(), at, outcome(c))
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

// reached is what the run was at that came after another one: the layers that had begun and not ended, or where there is none, the steps.
func (w *world) reached(before string) string {
	events, err := timeline.Read(filepath.Join(w.lastRun(), "events.jsonl"))
	if w.lastRun() == before || err != nil {
		return "before its record"
	}
	for _, kind := range []string{timeline.KindLayer, timeline.KindStep} {
		open := map[string]bool{}
		for _, event := range events {
			if event.Kind == kind {
				open[cmp.Or(event.Name, event.Layer)] = event.Phase != timeline.PhaseEnd
			}
		}
		maps.DeleteFunc(open, func(_ string, is bool) bool { return !is })
		if len(open) > 0 {
			return "in " + strings.Join(slices.Sorted(maps.Keys(open)), ", ")
		}
	}
	return "in no layer"
}

// killAlone kills castle, and waits until no Terragrunt and no OpenTofu of its goes on without it. What these leave behind, which would hold its lock
// for ever, is the next call's to end.
func (c *called) killAlone() {
	_ = syscall.Kill(c.command.Process.Pid, syscall.SIGKILL)
	c.world.until(5*time.Minute, "the tools have ended", func() (string, bool) {
		holders, err := filelock.Holders(filepath.Join(c.world.state(), "lock"))
		if err != nil {
			return err.Error(), false
		}
		var left []string
		for _, holder := range holders {
			left = append(left, holder.Program)
		}
		return strings.Join(left, ", "), !slices.Contains(left, "terragrunt") && !slices.Contains(left, "tofu")
	})
}

// endsWithin waits for the end of a run; one that goes on for too long is interrupted, as a person would. After a power cut that
// is always so: castle is left in a network that is no more.
func (c *called) endsWithin(limit time.Duration) {
	select {
	case <-c.done:
	case <-time.After(limit):
		_ = syscall.Kill(c.command.Process.Pid, syscall.SIGINT)
	}
	c.wait(time.Minute)
}
