package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestWhatIsHandedOverIsTheCompletedDescription(t *testing.T) {
	const inS3 = "backend: s3\n  s3:\n    bucket: tazlab-states\n    endpoint: https://s3.example.com\n"
	for _, states := range []string{"backend: local\n", inS3} {
		text := strings.Replace(blueText(t), "  kernelModules: [iscsi_tcp, dm_crypt]\n", "", 1)
		text = strings.Replace(text, inS3, states, 1)
		c, err := parse("cluster.yaml", "", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		value, err := c.HandOver()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Handed(value)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, c) {
			t.Errorf("handed over %+v, got %+v", c, got)
		}
		if strings.Contains(value, "\n") || strings.Contains(value, "null") {
			t.Errorf("not one line without holes: %s", value)
		}
		// JSON is YAML: what is handed over is a description that an editor and Load take.
		if err := compileSchema(t).Validate(instance(t, []byte(value))); err != nil {
			t.Error(err)
		}
		if again, err := parse("handed over", "", []byte(value)); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("read again: %v", err)
		}
	}
}

func TestWhatIsNoDescriptionIsCalledByItsVariable(t *testing.T) {
	for _, value := range []string{"", "{"} {
		if _, err := Handed(value); err == nil || !strings.Contains(err.Error(), Variable) {
			t.Errorf("%q gives %v", value, err)
		}
	}
}

// The longest string of an environment is 128 KiB on Linux (MAX_ARG_STRLEN).
func TestALargeClusterFitsIntoTheEnvironment(t *testing.T) {
	c, err := Load(filepath.Join(live, "blue"))
	if err != nil {
		t.Fatal(err)
	}
	for len(c.Nodes) < 500 {
		c.Nodes = append(c.Nodes, c.Nodes...)
	}
	c.Nodes = c.Nodes[:500]
	value, err := c.HandOver()
	if err != nil || len(value) > 128<<10 {
		t.Errorf("%d nodes take %d bytes, %v", len(c.Nodes), len(value), err)
	}
}
