//go:build linux

package scenarios

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
)

// keepsCredentials fails the test unless Infisical holds a kubeconfig and a talosconfig that open the cluster, and returns both.
func (w *world) keepsCredentials() (kubeconfig, talosconfig string) {
	w.t.Helper()
	kept := w.infisical()
	kubeconfig, talosconfig = kept[secrets.AdminKubeconfig], kept[secrets.AdminTalosconfig]
	if kubeconfig == "" || talosconfig == "" {
		w.t.Fatalf("kept are a kubeconfig of %d bytes and a talosconfig of %d", len(kubeconfig), len(talosconfig))
	}
	w.hasAQuorum([]byte(talosconfig))
	w.kubernetes([]byte(kubeconfig)).hasNodes()
	return kubeconfig, talosconfig
}

// changeInfisical gives a secret of the cluster another value while the world is off, or with an empty one removes it.
func (w *world) changeInfisical(name, value string) {
	w.t.Helper()
	file, place := filepath.Join(w.dir(), "infisical.json"), w.cluster.Secrets.Infisical
	data, err := os.ReadFile(file)
	var state map[string]any
	if err == nil {
		err = json.Unmarshal(data, &state)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	folder := any(state)
	for _, key := range []string{"projects", place.Project, "environments", place.Environment, "folders", place.Path, "secrets"} {
		folder = folder.(map[string]any)[key]
	}
	secrets := folder.(map[string]any)
	if value == "" {
		delete(secrets, name)
	} else {
		secrets[name].(map[string]any)["value"] = value
	}
	if data, err = json.Marshal(state); err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestCredentialsAreKeptAgain: what opens a cluster is in Infisical from its first create on, and again after it was lost or spoilt.
// Where it cannot be written that is told, and the cluster is up all the same.
func TestCredentialsAreKeptAgain(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on()
	w.castle("create").succeeds()
	kubeconfig, talosconfig := w.keepsCredentials()

	// What is well is left alone.
	w.castle("create").succeeds()
	if again, andAgain := w.keepsCredentials(); again != kubeconfig || andAgain != talosconfig {
		t.Error("what opened the cluster was replaced")
	}
	if end := w.event(ends("step", "platform", "kubeconfig in Infisical")); end.Result != timeline.ResultUnchanged {
		t.Errorf("the time line says %+v", end)
	}

	// One is lost, one is spoilt, and the identity may only read.
	tell.Fault(t, "of what opens the cluster one is lost in Infisical, one spoilt, and nothing may be written there")
	w.off(syscall.SIGTERM)
	w.changeInfisical(secrets.AdminKubeconfig, "")
	w.changeInfisical(secrets.AdminTalosconfig, "context: blue\n")
	seed := filepath.Join(w.live, "world.yaml")
	writable, err := os.ReadFile(seed)
	if err != nil {
		t.Fatal(err)
	}
	readOnly := strings.Replace(string(writable), "          tokenTTL: 2h\n", "          tokenTTL: 2h\n          readOnly: true\n", 1)
	if err := os.WriteFile(seed, []byte(readOnly), 0o644); err != nil {
		t.Fatal(err)
	}
	w.on()
	w.castle("create").failsWith("the API of cluster sandbox answers, but its kubeconfig is not kept", "the permission to create secrets in this path",
		"but its talosconfig is not kept", "the permission to edit secrets in this path", resumes)
	for _, layer := range []string{"secrets", "platform"} {
		if got := w.layerResult(layer); got != "ok" && got != "unchanged" {
			t.Errorf("the layer %s ended %q", layer, got)
		}
	}
	w.hasAQuorum([]byte(talosconfig))

	w.off(syscall.SIGTERM)
	if err := os.WriteFile(seed, writable, 0o644); err != nil {
		t.Fatal(err)
	}
	w.on()
	w.castle("create").succeeds()
	if again, _ := w.keepsCredentials(); again == kubeconfig {
		t.Error("a kubeconfig that was lost is there as it was")
	}
	w.leaksNothing()
}
