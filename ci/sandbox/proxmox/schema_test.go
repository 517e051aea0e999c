package proxmox

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestEachParameterIsHeldToTheSchemaOfItsCall(t *testing.T) {
	w := newWorld(t, nil)
	w.mustClone(t, 521, "cp")
	const (
		vm      = "/api2/json/nodes/pve/qemu/521"
		set     = "PUT " + vm + "/config?"
		clone   = "POST /api2/json/nodes/pve/qemu/900/clone?"
		unknown = "property is not defined in schema and the schema does not allow additional properties"
		missing = "property is missing and it is not optional"
		root    = "Only root may use this option."
	)
	for call, want := range map[string]map[string]string{
		set + "colour=red":                               {"colour": unknown},
		set + "scsi31=local-lvm:1":                       {"scsi31": unknown},
		set + "meta=x&cores=2":                           {"meta": unknown},
		set + "cores=many&sockets=0&vcpus=1.5":           {"cores": "type check ('integer') failed - got 'many'", "sockets": "value must have a minimum value of 1", "vcpus": "type check ('integer') failed - got '1.5'"},
		set + "onboot=true":                              {"onboot": "type check ('boolean') failed - got 'true'"},
		set + "shares=50001":                             {"shares": "value must have a maximum value of 50000"},
		set + "cpulimit=129":                             {"cpulimit": "value must have a maximum value of 128"},
		set + "bios=uefi":                                {"bios": "value 'uefi' does not have a value in the enumeration 'seabios, ovmf'"},
		set + "startdate=tomorrow":                       {"startdate": "value does not match the regex pattern"},
		set + "name=cp_1":                                {"name": "invalid format - value does not look like a valid DNS name\n"},
		set + "nameserver=192.168.77.1%209.9.9.9%20a_b":  {"nameserver": "invalid format - value does not look like a valid address: a_b\n"},
		set + "description=" + strings.Repeat("é", 8193): {"description": "value may only be 8192 characters long"},
		set + "agent=type=virtio":                        {"agent": "invalid format - format error\nagent.enabled: " + missing + "\n"},
		set + "agent=enabled=maybe":                      {"agent": "invalid format - format error\nagent.enabled: type check ('boolean') failed - got 'maybe'\n"},
		set + "cpu=cputype=hosts":                        {"cpu": "invalid format - Built-in cputype 'hosts' is not defined (missing 'custom-' prefix?)\n"},
		set + "cpu=host,flags=%2Bavx":                    {"cpu": "invalid format - VM-specific CPU flags must be a subset of: pcid, spec-ctrl, ibpb, ssbd, virt-ssbd, amd-ssbd, amd-no-ssb, pdpe1gb, md-clear, hv-tlbflush, hv-evmcs, aes\n"},
		set + "memory=8":                                 {"memory": "invalid format - format error\nmemory.current: value must have a minimum value of 16\n"},
		set + "boot=order%3Dscsi0%3Btpmstate0":           {"boot": "invalid format - format error\nboot.order: invalid format - invalid boot device 'tpmstate0'\n\n"},
		set + "net0=virtio,bridge=vmbr0,tag=5000":        {"net0": "invalid format - format error\nnet0.tag: value must have a maximum value of 4094\n"},
		set + "net0=virtio=01:00:00:00:00:00":            {"net0": "invalid format - format error\nnet0.macaddr: invalid format - value does not look like a valid unicast MAC address\n\n"},
		set + "net0=bridge=vmbr0":                        {"net0": "invalid format - format error\nnet0.model: " + missing + "\n"},
		set + "net0=virtio,colour=red":                   {"net0": "invalid format - invalid key in comma-separated list property: colour\n"},
		set + "net0=virtio,e1000":                        {"net0": "invalid format - duplicate key in comma-separated list property: model\n"},
		set + "net0=virtio,tag=":                         {"net0": "invalid format - missing key in comma-separated list property\n"},
		set + "ipconfig0=gw=192.168.77.1":                {"ipconfig0": "invalid format - format error\nipconfig0.ip: missing property - 'ipconfig0.gw' requires this property\n"},
		set + "ipconfig0=ip=192.168.77.5":                {"ipconfig0": "invalid format - format error\nipconfig0.ip: invalid format - value does not look like a valid ipv4 network configuration\n\n"},
		set + "scsi1=local-lvm:10,ssd=2,cache=fast":      {"scsi1": "invalid format - format error\nscsi1.cache: value 'fast' does not have a value in the enumeration 'none, writethrough, writeback, unsafe, directsync'\nscsi1.ssd: type check ('boolean') failed - got '2'\n"},
		set + "virtio1=local-lvm:10,ssd=1":               {"virtio1": "invalid format - invalid key in comma-separated list property: ssd\n"},
		set + "scsi1=iothread=1":                         {"scsi1": "invalid format - format error\nscsi1.file: " + missing + "\n"},
		set + "delete=sci0%3F":                           {"delete": "invalid format - invalid configuration ID 'sci0?'\n"},
		set + "force=1":                                  {"delete": "missing property - 'force' requires this property"},
		set + "skiplock=1":                               {"skiplock": root},
		set + "cores=2&cores=3":                          {"cores": "type check ('integer') failed - got ARRAY"},
		set + "background_delay=5":                       {"background_delay": unknown},
		"POST " + vm + "/config?background_delay=31":     {"background_delay": "value must have a maximum value of 30"},
		"PUT " + vm + "/config?vmid=522":                 {"vmid": "duplicate parameter (already defined in URI) with conflicting values!"},
		"PUT " + vm + "/resize?disk=scsi0&size=10X":      {"size": "value does not match the regex pattern"},
		"PUT " + vm + "/resize?size=10G":                 {"disk": missing},
		"POST " + vm + "/status/start?timeout=-1":        {"timeout": "value must have a minimum value of 0"},
		"POST " + vm + "/status/reboot?forceStop=1":      {"forceStop": unknown},
		"POST " + vm + "/status/shutdown?skiplock=1":     {"skiplock": root},
		"DELETE " + vm + "?force=1":                      {"force": unknown},
		clone + "name=a":                                 {"newid": missing},
		clone + "newid=99":                               {"newid": "invalid format - value does not look like a valid VM ID\n"},
		clone + "newid=522&onboot=1":                     {"onboot": unknown},
		clone + "newid=522&format=raw2":                  {"format": "value 'raw2' does not have a value in the enumeration 'raw, qcow2, vmdk'"},
		"GET /api2/json/cluster/resources?type=qemu":     {"type": "value 'qemu' does not have a value in the enumeration 'vm, storage, node, sdn'"},
		"GET /api2/json/cluster/nextid?vmid=7":           {"vmid": "invalid format - value does not look like a valid VM ID\n"},
		"GET /api2/json/nodes?full=1":                    {"full": unknown},
		"GET /api2/json/pools?type=qemu":                 {"poolid": "missing property - 'type' requires this property"},
		"GET /api2/json/nodes/pve/tasks?source=some":     {"source": "value 'some' does not have a value in the enumeration 'archive, active, all'"},
		"GET /api2/json/nodes/pve/qemu/abc/config":       {"vmid": "type check ('integer') failed - got 'abc'"},
	} {
		method, path, _ := strings.Cut(call, " ")
		status, body := w.raw(t, method, path, tokenID+"="+tokenSecret)
		var answer struct {
			Errors map[string]string `json:"errors"`
		}
		_, content, _ := strings.Cut(body, "\r\n\r\n")
		if err := json.Unmarshal([]byte(content), &answer); err != nil || status != "400 Parameter verification failed." || !maps.Equal(answer.Errors, want) {
			t.Errorf("%s: got %q with %q, want %q", call, status, answer.Errors, want)
		}
	}
	for call, want := range map[string]string{
		set + "onboot=1&agent=enabled=yes&boot=order=scsi0&delete=nameserver&delete=searchdomain": "200 OK",
		set + "scsi1=/dev/sdb":                                  "500 Only root can pass arbitrary filesystem paths.",
		set + "balloon=99999":                                   "500 balloon value too large (must be smaller than assigned memory)",
		clone + "newid=522&pool=production":                     "403 Permission check failed (pool 'production' does not exist)",
		clone + "newid=522&snapname=before":                     "500 the simulated Proxmox does not play the parameter 'snapname'",
		"GET /api2/json/pools?poolid=x":                         "500 pool 'x' does not exist",
		"POST " + vm + "/status/shutdown?forceStop=1&timeout=5": "200 OK",
	} {
		method, path, _ := strings.Cut(call, " ")
		if status, body := w.raw(t, method, path, tokenID+"="+tokenSecret); status != want {
			t.Errorf("%s: got %q, want %q\n%s", call, status, want, body)
		}
	}
}

func TestEachSchemaIsThatOfACall(t *testing.T) {
	w := newWorld(t, nil)
	mux := w.handler.(*http.ServeMux)
	for call := range callParameters {
		method, path, _ := strings.Cut(call, " ")
		if _, pattern := mux.Handler(httptest.NewRequest(method, "/api2/json"+path, nil)); pattern != method+" /api2/json"+path {
			t.Errorf("no such call: %s", call)
		}
	}
}
