package platform

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnAccountOfAPlanIsEnoughWhereNoMachineChanges(t *testing.T) {
	line := func(action, typ, name string) string {
		return `{"@level":"info","type":"planned_change","change":{"resource":{"addr":"` + typ + "." + name + `[\"blue-cp-1\"]","resource_type":"` + typ + `","resource_name":"` + name + `","resource_key":"blue-cp-1"},"action":"` + action + `"}}` + "\n"
	}
	const begin = `{"@level":"info","@message":"OpenTofu 1.12.6","type":"version","ui":"1.2"}` + "\n"
	const end = `{"@level":"info","@message":"Plan: 0 to add","changes":{"add":0,"change":0,"import":0,"remove":0,"operation":"plan"},"type":"change_summary"}` + "\n"
	const vm = "proxmox_virtual_environment_vm"
	for name, test := range map[string]struct {
		account string
		want    bool
	}{
		"nothing changes":                        {begin + end, true},
		"something else does":                    {begin + line("create", "terraform_data", "it") + end, true},
		"a machine is changed":                   {begin + line("update", vm, "node") + end, false},
		"a machine goes":                         {begin + line("delete", vm, "node") + end, false},
		"a machine is imported":                  {begin + line("import", vm, "node") + end, false},
		"a record of one that is not castle's":   {begin + line("replace", "terraform_data", "node") + end, false},
		"it ends early":                          {begin, false},
		"it is cut off":                          {begin + end[:40], false},
		"there is nothing":                       {"", false},
		"a machine changes after something else": {begin + line("create", "terraform_data", "it") + line("update", vm, "node") + end, false},
	} {
		if got := leavesMachines(strings.NewReader(test.account)); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// What OpenTofu has written, of the plans that the package plan keeps.
func TestAccountsOfRealPlansAreRead(t *testing.T) {
	for name, want := range map[string]bool{"unchanged": true, "outputs": true, "changed": true, "failed": false} {
		account, err := os.Open(filepath.Join("..", "plan", "testdata", name, "stream.json"))
		if err != nil {
			t.Fatal(err)
		}
		if got := leavesMachines(account); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		account.Close()
	}
}
