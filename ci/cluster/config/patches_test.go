package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
)

// Each of them would take from the cluster what castle finds it by, or its data.
func TestWhatCastleSaysIsNotPatched(t *testing.T) {
	for _, rule := range said {
		name := rule.name
		if name == "" {
			name = "net0"
		}
		path := rule.path
		if path == "" {
			path = "up"
		}
		patch := strings.ReplaceAll(path, ".", ": {") + ": x" + strings.Repeat("}", strings.Count(path, "."))
		if rule.kind != "" {
			patch = fmt.Sprintf("apiVersion: v1alpha1, kind: %s, name: %s, %s", rule.kind, name, patch)
		}
		text := strings.Replace(blueText(t), "kubernetes:\n", "  patches:\n    all:\n      - {"+patch+"}\nkubernetes:\n", 1)
		_, err := parse("cluster.yaml", "", []byte(text))
		if err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.HasPrefix(err.Error(), "cluster.yaml:30: talos.patches.all[0]: changes ") || !strings.HasSuffix(err.Error(), rule.instead) {
			t.Errorf("%s: %v", patch, err)
		}
		above, _, below := strings.Cut(rule.path, ".")
		if rule.kind != "" || !below {
			continue
		}
		text = strings.Replace(blueText(t), "kubernetes:\n", "  patches:\n    all:\n      - {"+above+": {$patch: delete}}\nkubernetes:\n", 1)
		if _, err := parse("cluster.yaml", "", []byte(text)); err == nil || !strings.Contains(err.Error(), rule.path) {
			t.Errorf("deleted with all of %s: %v", above, err)
		}
	}
}

func TestAPatchOfAFileIsRefusedWithTheFilesLine(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "blue")
	text := strings.Replace(blueText(t), "vmID: 424,", "vmID: 424, patches: [patches/disk.yaml],", 1)
	filetest.All(t, folder, map[string]string{File: text, "patches/disk.yaml": "machine:\n  env: {A: b}\n  install:\n    image: x\n"})
	_, err := Load(folder)
	want := "cluster.yaml:20: nodes[3] blue-worker-1: patches[0] patches/disk.yaml:4 changes machine.install.image, which castle relies on: talos.version and talos.schematic say it"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
