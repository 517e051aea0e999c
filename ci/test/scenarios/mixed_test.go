//go:build linux

package scenarios

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
)

// How many mixes are tried, and the seed of the first. `make drill FAULTS=random` sets them. The first one has a mood of Infisical's.
const (
	variableMixes     = "CASTLE_MIXES"
	variableMixSeed   = "CASTLE_MIXES_SEED"
	fewMixes, mixSeed = 1, 25
)

// TestMixedFaultsAreOutlasted mixes faults at random over destroy and create of a cluster. What is meant to be outlasted is; what ends a run
// leaves something that one more call, without the faults, makes a complete cluster of.
func TestMixedFaultsAreOutlasted(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	tools(t)
	seed := number(t, variableMixSeed, mixSeed)
	for i := range number(t, variableMixes, fewMixes) {
		t.Run(strconv.Itoa(seed+i), func(t *testing.T) {
			t.Parallel()
			outlasts(t, seed+i)
		})
	}
}

func TestTheFirstMixMeetsWhatItsStoryIsHeldBy(t *testing.T) {
	cluster, err := config.Load("../../../terragrunt/live/sandbox")
	if err != nil {
		t.Fatal(err)
	}
	m := profile.NewMix(mixSeed, cluster)
	faults, err := profile.ParseFaults(m.Faults)
	if err != nil || m.EndsCreate || !faults.Has(profile.InfisicalMoods) {
		t.Errorf("the mix of seed %d is %v, and has to be one with %s that a create outlasts: choose another seed", mixSeed, m.Faults, profile.InfisicalMoods)
	}
}

func outlasts(t *testing.T, seed int) {
	w := newWorld(t, "none", "0")
	m := profile.NewMix(uint64(seed), w.cluster)
	w.on()
	w.castle("create").succeeds()

	w.off(syscall.SIGTERM)
	w.on(m.Faults...)
	call := func(args ...string) string {
		c := w.castle(args...)
		took := c.took.Round(100 * time.Millisecond).String()
		if c.err != nil {
			_, cause, _ := strings.Cut(c.stderr.String(), "\ncastle: ")
			tell.Observation(t, c.took, "%s says: %s", c.verb(), cause)
			return "failed after " + took
		}
		c.succeeds()
		return took
	}
	failed := func(outcome string) bool { return strings.HasPrefix(outcome, "failed") }
	destroy, create, afterwards := call("destroy", "--confirm=sandbox"), "", ""
	if failed(destroy) != m.EndsDestroy {
		t.Errorf("with the faults %v destroy: %s", m.Faults, destroy)
	}
	if !failed(destroy) {
		// The gate of Flux's source would wait for minutes until somebody brings other credentials.
		create = call("create", "--gate-timeout=90s")
		if failed(create) != m.EndsCreate {
			t.Errorf("with the faults %v create: %s", m.Faults, create)
		}
	}
	if failed(destroy) || failed(create) {
		w.off(syscall.SIGTERM)
		w.on()
		var calls []string
		if failed(destroy) || m.Anew {
			w.castle("destroy", "--confirm=sandbox").succeeds()
			calls = append(calls, "destroy")
		}
		w.castle("create").succeeds()
		afterwards = strings.Join(append(calls, "create"), ", ")
	}
	w.isWhole()
	w.leaksNothing()
	if !t.Failed() {
		t.Logf("| %d | %s | %s | %s | %s |", seed, strings.Join(m.Faults, ", "), destroy, create, afterwards)
	}
}
