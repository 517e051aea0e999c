package state

import (
	"fmt"
	"strings"
	"testing"
)

func TestStatesAreListedByAddress(t *testing.T) {
	held, err := parse(`{"resources": [
		{"mode": "data", "type": "a", "name": "b", "instances": [{}]},
		{"mode": "managed", "type": "vm", "name": "node", "instances": [{"index_key": "cp-1"}, {"index_key": 2}]},
		{"module": "module.x", "mode": "managed", "type": "helm_release", "name": "r", "instances": [{}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(held.addresses(), " "), `vm.node["cp-1"] vm.node[2] module.x.helm_release.r`; got != want {
		t.Errorf("got %q", got)
	}
}

func TestVMsAreListedByTheirNodes(t *testing.T) {
	held, err := parse(`{"resources": [
		{"mode": "managed", "type": "terraform_data", "name": "other", "instances": [{"attributes": {"vm_id": 9}}]},
		{"mode": "managed", "type": "proxmox_virtual_environment_vm", "name": "node", "instances": [
			{"index_key": "cp-1", "attributes": {"vm_id": 421, "name": "cp-1", "node_name": "pve", "tags": ["castle", "castle-blue", "controlplane"], "delete_unreferenced_disks_on_destroy": true,
				"initialization": [{"ip_config": [{"ipv4": [{"address": "192.168.1.211/24"}]}]}]}},
			{"index_key": "worker-1", "status": "tainted", "attributes": {"vm_id": 424}}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if vms, err := held.vms(); err != nil || fmt.Sprint(vms, vms.IDs()) != "map[cp-1:{421 pve controlplane 192.168.1.211 false true} worker-1:{424  worker invalid IP true false}] map[cp-1:421 worker-1:424]" {
		t.Errorf("got %v, %v", vms, err)
	}
	nameless, err := parse(`{"resources": [{"mode": "managed", "type": "proxmox_virtual_environment_vm", "name": "node", "instances": [{"index_key": "cp-1", "attributes": {}}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nameless.vms(); err == nil || !strings.Contains(err.Error(), "which VM cp-1 is") {
		t.Errorf("a state that names no id: %v", err)
	}
}

// A machine that castle did not make is known by the record that its module keeps.
func TestMachinesThatAreThereAreListedByTheirNodes(t *testing.T) {
	held, err := parse(`{"resources": [
		{"mode": "managed", "type": "terraform_data", "name": "other", "instances": [{"index_key": "x", "attributes": {"input": {"value": "text", "type": "string"}}}]},
		{"mode": "managed", "type": "terraform_data", "name": "node", "instances": [
			{"index_key": "cp-1", "attributes": {"input": {"value": {"address": "192.168.1.211", "role": "controlplane"}, "type": ["object", {"address": "string", "role": "string"}]}}},
			{"index_key": "worker-1", "attributes": {"input": {"value": {"address": "192.168.1.214", "role": "worker"}, "type": ["object", {"address": "string", "role": "string"}]}}}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if vms, err := held.vms(); err != nil || fmt.Sprint(vms) != "map[cp-1:{0  controlplane 192.168.1.211 false false} worker-1:{0  worker 192.168.1.214 false false}]" {
		t.Errorf("got %v, %v", vms, err)
	}
	nowhere, err := parse(`{"resources": [{"mode": "managed", "type": "terraform_data", "name": "node", "instances": [{"index_key": "cp-1", "attributes": {"input": {"value": {}, "type": ["object", {}]}}}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nowhere.vms(); err == nil || !strings.Contains(err.Error(), "where cp-1 is") {
		t.Errorf("a record without an address: %v", err)
	}
}
