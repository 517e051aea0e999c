package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func cloudText(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "cloud.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A cluster on AWS is read, handed over and rendered without anything of Proxmox, and an editor takes it.
func TestAClusterOnAWSIsDescribed(t *testing.T) {
	c, err := parse("cluster.yaml", "cloud", []byte(cloudText(t)))
	if err != nil {
		t.Fatal(err)
	}
	if c.AWS.Architecture != "amd64" || len(c.AWS.Zones) != 3 || c.Nodes[0].InstanceType != "m7i.large" || c.LoadBalancer.Has() {
		t.Errorf("read as %+v", c)
	}
	handed, err := c.HandOver()
	if err != nil || strings.Contains(handed, "proxmox") || strings.Contains(handed, "vmID") || strings.Contains(handed, "gateway") || strings.Contains(handed, "cores") {
		t.Errorf("handed over as %s, %v", handed, err)
	}
	if again, err := Handed(handed); err != nil || !reflect.DeepEqual(again, c) {
		t.Errorf("%v: handed over as\n%+v\nnot\n%+v", err, again, c)
	}
	if rendered, err := parse("rendered", "cloud", []byte(c.Text())); err != nil || !reflect.DeepEqual(rendered, c) {
		t.Errorf("%v\n%s", err, c.Text())
	}
	if err := compileSchema(t).Validate(instance(t, []byte(cloudText(t)))); err != nil {
		t.Error(err)
	}
	if err := c.Unready(); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("castle works on it: %v", err)
	}
	if c, err := Load(filepath.Join(live, "blue")); err != nil || c.Unready() != nil {
		t.Errorf("castle does not work on blue: %v, %v", err, c.Unready())
	}
}

func TestALoadBalancerOfTheCloudNeedsNoPool(t *testing.T) {
	if _, err := parse("cluster.yaml", "cloud", []byte(cloudText(t)+"loadBalancer: none\n")); err != nil {
		t.Error(err)
	}
}

// Rules look at fields that other mistakes may have left without a value.
func TestADescriptionOfAWSThatIsCutAnywhereIsRefusedAndNotMore(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(cloudText(t), "\n"), "\n")
	for i := range lines {
		_, _ = parse("cluster.yaml", "", []byte(strings.Join(append(append([]string{}, lines[:i]...), lines[i+1:]...), "\n")))
		_, _ = parse("cluster.yaml", "", []byte(strings.Join(lines[:i], "\n")))
	}
}
