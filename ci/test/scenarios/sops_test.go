//go:build linux

package scenarios

import (
	"encoding/pem"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/secretadmin"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/test/tell"
)

var secretKind = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

const pkiFile = "talos.secrets.sops.yaml"

// leaveInfisical describes the cluster with all of its secrets in SOPS files, of which the PKI's is not there yet.
func (w *world) leaveInfisical() {
	w.t.Helper()
	file := filepath.Join(w.live, config.File)
	data, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	section := regexp.MustCompile(`(?m)^  sops: secrets.sops.yaml\n  infisical:\n(    .*\n)+`)
	data = section.ReplaceAll(data, []byte("  sops: [secrets.sops.yaml, "+pkiFile+"]\n  infisical: none\n"))
	if err := os.WriteFile(file, data, 0o644); err != nil {
		w.t.Fatal(err)
	}
	values := w.sopsValues()
	if w.cluster, err = config.Load(w.live); err != nil {
		w.t.Fatal(err)
	}
	maps.DeleteFunc(values, func(name, _ string) bool { return strings.HasPrefix(name, "INFISICAL_") })
	seed := w.seed()
	for name, value := range seed.Infisical.Projects[0].Environments["prod"]["/clusters/sandbox/flux"] {
		values[name] = value
	}
	ca, err := os.ReadFile(filepath.Join(w.dir(), "ca.pem"))
	if err != nil {
		w.t.Fatal(err)
	}
	block, _ := pem.Decode(ca)
	values[secrets.GitOpsCA] = string(pem.EncodeToMemory(block))
	w.writeSOPS("secrets.sops.yaml", values)
}

// TestAClusterWithoutInfisical is created from SOPS files alone, which hold the PKI, too. Infisical is not there to be asked.
func TestAClusterWithoutInfisical(t *testing.T) {
	w := newWorld(t, "none", "0")
	w.on() // makes the Git server's authority
	w.off(syscall.SIGTERM)
	if err := os.Remove(filepath.Join(w.dir(), "infisical.json")); err != nil {
		t.Fatal(err)
	}
	w.leaveInfisical()
	w.on()
	tell.Fault(t, "there is no Infisical")

	// A PKI that would be lost is not made on the way.
	w.castle("create").failsWith("TALOS_SECRETS is missing in", pkiFile+" is named in secrets.sops and does not exist", "dagger call secrets-init --cluster sandbox", resumes)
	if vms := w.vms(); len(vms) != 1 {
		t.Errorf("Proxmox has %+v", vms)
	}
	w.castle("secrets-check").failsWith("TALOS_SECRETS is missing in")
	w.castle("secrets-init", "--out="+w.live).succeeds()
	w.castle("secrets-check").succeeds()
	pki := w.sopsValues()[secrets.TalosSecrets]
	w.castle("secrets-init", "--out="+w.live).failsWith("holds TALOS_SECRETS already, and nothing was made")

	create := w.start(w.live, nil, "create")
	key := create.overhear()
	create.wait(patience)
	create.succeeds()
	for _, layer := range []string{"secrets", "platform", "engine", "networking", "storage", "gitops"} {
		if got := w.layerResult(layer); got != "ok" {
			t.Errorf("the layer %s ended %q", layer, got)
		}
	}
	if w.sopsValues()[secrets.TalosSecrets] != pki {
		t.Error("the PKI was replaced")
	}
	if _, err := os.Stat(filepath.Join(w.dir(), "infisical.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Infisical was there to be asked: %v", err)
	}
	w.hasExactlyItsVMs()
	members := w.hasAQuorum(w.unsealed("talosconfig"))
	k := w.kubernetes(w.unsealed("kubeconfig"))
	k.hasNodes()
	k.follows(w.head(), seedTag)
	version := func() string {
		return k.get(secretKind, "flux-system", "flux-system").GetResourceVersion() + " " + k.get(secretKind, "flux-system", "sops-age").GetResourceVersion()
	}
	identity := version()

	w.castle("create").succeeds()
	w.changedNothing()
	if got := w.hasAQuorum(w.unsealed("talosconfig")); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
	}
	if got := version(); got != identity {
		t.Errorf("Flux's Secrets were of the versions %s and are of %s", identity, got)
	}
	if plan := w.castle("plan").succeeds().stdout.String(); strings.Count(plan, "No changes.") != 6 {
		t.Errorf("the plan is\n%s", plan)
	}
	w.isWell()

	// A commit comes through, and a Secret that somebody took away is there again after the next create.
	w.pushImage("blog-1111111")
	w.pushTag(seedTag, "blog-1111111")
	k.reconcile()
	k.follows(w.head(), "blog-1111111")
	if err := k.typed.CoreV1().Secrets("flux-system").Delete(t.Context(), "sops-age", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.castle("create").succeeds()
	version()

	// Another age key opens the same, and the old one nothing.
	next := w.unsealed("secrets-age-key")
	rotate := w.start(w.live, []string{secretadmin.NewKeyVariable + "=" + string(next)}, "secrets-rotate-age", "--out="+w.live)
	rotate.wait(time.Minute)
	rotate.succeeds()
	w.castle("create").failsWith("wrong age key")
	if err := os.WriteFile(filepath.Join(w.live, "age.key"), next, 0o600); err != nil {
		t.Fatal(err)
	}
	w.castle("create").succeeds()
	w.changedNothing()
	if list := w.castle("secrets-list").succeeds().stdout.String(); !strings.Contains(list, "TALOS_SECRETS") || strings.Contains(list, "missing") {
		t.Errorf("the secrets are listed as\n%s", list)
	}

	w.castle("destroy", "--confirm=sandbox").succeeds()
	if vms := w.vms(); len(vms) != 1 {
		t.Errorf("Proxmox has %+v", vms)
	}
	t.Setenv("SOPS_AGE_KEY", string(next)) // for the search, which opens the files
	w.leaksNothing(key)
}
