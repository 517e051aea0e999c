//go:build linux

package inside

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestControlGroupsOfVersion1TakeThePlaceOfVersion2(t *testing.T) {
	of := func(m Machine) (all []string) {
		for _, one := range m.mounts() {
			if one.at == controlGroups || filepath.Dir(one.at) == controlGroups {
				all = append(all, one.kind+" "+one.options+" "+filepath.Base(one.at))
			}
		}
		return all
	}
	if got, want := of(Machine{}), []string{"cgroup2  cgroup"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	want := []string{"tmpfs mode=755 cgroup", "cgroup memory memory", "cgroup none,name=systemd systemd"}
	if got := of(Machine{Hierarchies: []string{"memory", "systemd"}}); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
