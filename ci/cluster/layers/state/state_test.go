package state

import (
	"strings"
	"testing"
)

func TestStatesAreListedByAddress(t *testing.T) {
	got, err := addresses(`{"resources": [
		{"mode": "data", "type": "a", "name": "b", "instances": [{}]},
		{"mode": "managed", "type": "vm", "name": "node", "instances": [{"index_key": "cp-1"}, {"index_key": 2}]},
		{"module": "module.x", "mode": "managed", "type": "helm_release", "name": "r", "instances": [{}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := `vm.node["cp-1"] vm.node[2] module.x.helm_release.r`; strings.Join(got, " ") != want {
		t.Errorf("got %q", got)
	}
}
