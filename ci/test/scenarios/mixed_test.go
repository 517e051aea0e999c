//go:build linux

package scenarios

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tazlab.net/castle/ci/sandbox/profile"
)

// How many mixes are tried, and the seed of the first. `make drill FAULTS=random` sets them.
const (
	variableMixes     = "CASTLE_MIXES"
	variableMixSeed   = "CASTLE_MIXES_SEED"
	fewMixes, mixSeed = 1, 1
)

// mixable is a fault of the proving ground that can be mixed with others.
type mixable struct {
	name  string
	value func(*rand.Rand) string
	// What a run that meets it does. A destroy meets some as well.
	ends, endsDestroy bool
	anew              bool // what it leaves is no cluster that a create could go on with: destroy it first
}

var mixables = []mixable{
	{name: profile.WebhookLate, value: seconds(6)},
	{name: profile.WebhookLies, value: seconds(6)},
	{name: profile.BootstrapNoop, value: times(3)},
	{name: profile.VIPFlaps, value: seconds(5)},
	{name: profile.ProxmoxMoods, value: times(3)},
	{name: profile.InfisicalMoods, value: times(2)},
	{name: profile.CloneFails, value: vmOf(521, 5), ends: true},
	{name: profile.DHCPDrift, value: vmOf(521, 5), ends: true},
	{name: profile.Ghosts, value: vmOf(521, 3), ends: true, anew: true},
	{name: profile.EtcdAlarm, value: vmOf(521, 3), ends: true, anew: true},
	{name: profile.SecretMissing, value: func(*rand.Rand) string { return "GITOPS_TOKEN" }, ends: true, endsDestroy: true},
	{name: profile.FluxNoSecret, value: func(*rand.Rand) string { return "" }, ends: true},
}

func seconds(most int) func(*rand.Rand) string {
	return func(random *rand.Rand) string { return fmt.Sprintf("%ds", 1+random.IntN(most)) }
}

func times(most int) func(*rand.Rand) string {
	return func(random *rand.Rand) string { return strconv.Itoa(1 + random.IntN(most)) }
}

// vmOf is one of n ids.
func vmOf(first, n int) func(*rand.Rand) string {
	return func(random *rand.Rand) string { return strconv.Itoa(first + random.IntN(n)) }
}

// mix is two to five faults, of which at most one ends a run: a second one would never be met.
type mix struct {
	faults  []string
	hardest mixable // that one; else none
}

func newMix(random *rand.Rand) mix {
	var m mix
	wanted := 2 + random.IntN(4)
	for _, i := range random.Perm(len(mixables)) {
		fault := mixables[i]
		if len(m.faults) == wanted || fault.ends && m.hardest.ends {
			continue
		}
		if fault.ends {
			m.hardest = fault
		}
		m.faults = append(m.faults, strings.TrimSuffix(fault.name+"="+fault.value(random), "="))
	}
	slices.Sort(m.faults)
	return m
}

// TestMixedFaultsAreOutlasted mixes faults at random over destroy and create of a cluster. What is meant to be outlasted is; what ends a run
// leaves something that one more call, without the faults, makes a complete cluster of.
func TestMixedFaultsAreOutlasted(t *testing.T) {
	t.Parallel()
	tools(t)
	seed := number(t, variableMixSeed, mixSeed)
	for i := range number(t, variableMixes, fewMixes) {
		t.Run(strconv.Itoa(seed+i), func(t *testing.T) {
			t.Parallel()
			outlasts(t, seed+i, newMix(rand.New(rand.NewPCG(uint64(seed+i), 1))))
		})
	}
}

func outlasts(t *testing.T, seed int, m mix) {
	// The gate of Flux's source would wait for minutes until somebody brings other credentials.
	impatience := impatient(`["castle-cluster", "wait", local.layer`, `"--timeout=90s"`)
	w := newWorld(t, "none", "0", impatience)
	w.on()
	w.castle("create").succeeds()

	w.off(syscall.SIGTERM)
	w.on(m.faults...)
	call := func(args ...string) string {
		c := w.castle(args...)
		if c.err != nil {
			return "failed after " + c.took.Round(100*time.Millisecond).String()
		}
		return c.took.Round(100 * time.Millisecond).String()
	}
	failed := func(outcome string) bool { return strings.HasPrefix(outcome, "failed") }
	destroy, create, afterwards := call("destroy", "--confirm=sandbox"), "", ""
	if failed(destroy) != m.hardest.endsDestroy {
		t.Errorf("with the faults %v destroy: %s", m.faults, destroy)
	}
	if !failed(destroy) {
		create = call("create")
		if failed(create) != m.hardest.ends {
			t.Errorf("with the faults %v create: %s", m.faults, create)
		}
	}
	if failed(destroy) || failed(create) {
		w.off(syscall.SIGTERM)
		w.on()
		var calls []string
		if failed(destroy) || m.hardest.anew {
			w.castle("destroy", "--confirm=sandbox").succeeds()
			calls = append(calls, "destroy")
		}
		w.castle("create").succeeds()
		afterwards = strings.Join(append(calls, "create"), ", ")
	}
	w.isWhole()
	w.leaksNothing()
	if !t.Failed() {
		t.Logf("| %d | %s | %s | %s | %s |", seed, strings.Join(m.faults, ", "), destroy, create, afterwards)
	}
}

// A mix has one fault at most that ends a run, and the same seed the same faults.
func TestAMixIsThatOfItsSeed(t *testing.T) {
	ended := 0
	for seed := range uint64(200) {
		m, again := newMix(rand.New(rand.NewPCG(seed, 1))), newMix(rand.New(rand.NewPCG(seed, 1)))
		if !slices.Equal(m.faults, again.faults) {
			t.Errorf("seed %d gives %v and then %v", seed, m.faults, again.faults)
		}
		faults, err := profile.ParseFaults(m.faults)
		if err != nil || len(faults) != len(m.faults) || len(faults) < 2 {
			t.Errorf("seed %d gives %v: %v", seed, m.faults, err)
		}
		ends := 0
		for _, fault := range mixables {
			if faults.Has(fault.name) && fault.ends {
				ends++
			}
		}
		if ends > 1 {
			t.Errorf("seed %d gives %v, of which %d end a run", seed, m.faults, ends)
		}
		ended += ends
	}
	if ended < 50 || ended > 195 {
		t.Errorf("of 200 mixes %d have a fault that ends a run", ended)
	}
}
