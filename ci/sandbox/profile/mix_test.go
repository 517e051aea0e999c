package profile

import (
	"reflect"
	"slices"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
)

func TestAMixIsThatOfItsSeedAndHasAtMostOneFaultThatEndsARun(t *testing.T) {
	var ended, anew, destroys int
	met := map[string]bool{}
	cluster, err := config.Load("../../../terragrunt/live/sandbox")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(200) {
		m := NewMix(seed, cluster)
		if again := NewMix(seed, cluster); !reflect.DeepEqual(m, again) {
			t.Errorf("seed %d gives %+v and then %+v", seed, m, again)
		}
		faults, err := ParseFaults(m.Faults)
		if err != nil || len(faults) != len(m.Faults) || len(faults) < 2 || len(faults) > 5 {
			t.Errorf("seed %d gives %v: %v", seed, m.Faults, err)
		}
		ends := 0
		for _, fault := range mixables {
			if faults.Has(fault.name) {
				met[fault.name] = true
				if fault.endsCreate {
					ends++
				}
			}
		}
		if ends > 1 || (ends == 1) != m.EndsCreate || m.Anew && !m.EndsCreate {
			t.Errorf("seed %d gives %+v, of which %d end a create", seed, m, ends)
		}
		if faults.Is(Ghosts, 524) || faults.Is(EtcdAlarm, 525) {
			t.Errorf("seed %d has a worker in etcd: %v", seed, m.Faults)
		}
		ended += ends
		if m.Anew {
			anew++
		}
		if m.EndsDestroy {
			destroys++
		}
	}
	if ended < 50 || ended > 120 || anew == 0 || destroys == 0 {
		t.Errorf("of 200 mixes %d end a create, %d a destroy, and %d have to be destroyed", ended, destroys, anew)
	}
	for _, name := range faultNames {
		if !met[name] && !slices.Contains(alone, name) && !slices.ContainsFunc(mixables, func(fault mixable) bool { return fault.name == name }) {
			t.Errorf("the fault %s is never mixed with another: give it a row in mix.go", name)
		}
	}
}
