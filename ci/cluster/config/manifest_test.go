package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// network is what a CNI's manifests look like.
const network = `# rendered
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: cilium, namespace: kube-system}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: cilium, namespace: kube-system}
`

func TestAnotherCNIComesWithItsManifests(t *testing.T) {
	load := func(file string) (*Cluster, error) {
		t.Helper()
		folder := filepath.Join(t.TempDir(), "blue")
		text := strings.Replace(blueText(t), "  podSubnet:", "  cni: none\n  cniManifests: [cilium.yaml]\n  podSubnet:", 1)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{File: text, "cilium.yaml": file} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return Load(folder)
	}
	c, err := load(network)
	if err != nil {
		t.Fatal(err)
	}
	handed, err := c.HandOver()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Handed(handed)
	if err != nil || !reflect.DeepEqual(again.Kubernetes, c.Kubernetes) || again.Kubernetes.CNIManifests[0].Text() != network {
		t.Errorf("%v: handed over as %+v", err, again)
	}
	if rendered, err := parse("rendered", "blue", []byte(c.Text())); err != nil || !reflect.DeepEqual(rendered.Kubernetes, c.Kubernetes) {
		t.Errorf("%v\n%s", err, c.Text())
	}
	for file, says := range map[string]string{
		"":                         "cniManifests[0]: cilium.yaml holds no objects of Kubernetes",
		"# nothing\n":              "cniManifests[0]: cilium.yaml holds no objects of Kubernetes",
		"a: [\n":                   "cniManifests[0]: cilium.yaml is not YAML",
		network + "---\nkind: X\n": "cniManifests[0]: cilium.yaml:11 is no object of Kubernetes: it needs apiVersion, kind and metadata.name",
		network + strings.Repeat("# "+strings.Repeat("x", 1022)+"\n", 120): "KiB with its patches and manifests, and 120 KiB can be handed to the layers",
	} {
		if _, err := load(file); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: %v", file, err)
		}
	}
}
