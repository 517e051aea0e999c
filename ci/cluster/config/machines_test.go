package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func machinesText(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "machines.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A cluster of machines that are there already is read, handed over and rendered without anything of Proxmox, and an editor takes it.
func TestAClusterOfMachinesThatAreThereIsDescribed(t *testing.T) {
	c, err := parse("cluster.yaml", "metal", []byte(machinesText(t)))
	if err != nil {
		t.Fatal(err)
	}
	if c.MakesMachines() || c.Unready() != nil || c.Nodes[0].InstallDisk != "/dev/nvme0n1" || c.Nodes[0].MAC != "52:54:00:12:34:56" || !c.Endpoint.IsValid() {
		t.Errorf("read as %+v", c)
	}
	handed, err := c.HandOver()
	if err != nil || strings.Contains(handed, "proxmox") || strings.Contains(handed, "vmID") || strings.Contains(handed, "disks") || strings.Contains(handed, "cores") {
		t.Errorf("handed over as %s, %v", handed, err)
	}
	if again, err := Handed(handed); err != nil || !reflect.DeepEqual(again, c) {
		t.Errorf("%v: handed over as\n%+v\nnot\n%+v", err, again, c)
	}
	if rendered, err := parse("rendered", "metal", []byte(c.Text())); err != nil || !reflect.DeepEqual(rendered, c) {
		t.Errorf("%v\n%s", err, c.Text())
	}
	if err := compileSchema(t).Validate(instance(t, []byte(machinesText(t)))); err != nil {
		t.Error(err)
	}
}

// Rules look at fields that other mistakes may have left without a value.
func TestADescriptionOfMachinesThatIsCutAnywhereIsRefusedAndNotMore(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(machinesText(t), "\n"), "\n")
	for i := range lines {
		_, _ = parse("cluster.yaml", "", []byte(strings.Join(append(append([]string{}, lines[:i]...), lines[i+1:]...), "\n")))
		_, _ = parse("cluster.yaml", "", []byte(strings.Join(lines[:i], "\n")))
	}
}
