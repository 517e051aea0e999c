//go:build linux

package scenarios

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/cluster/preflight"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
	"tazlab.net/castle/ci/test/tell"
)

// nothingWasMade fails the test where there is a machine, or a layer after the secrets was started.
func (w *world) nothingWasMade() {
	w.t.Helper()
	if vms := w.vms(); len(vms) != 1 {
		w.t.Errorf("Proxmox has %+v", vms)
	}
	for _, layer := range []string{"platform", "engine", "networking", "storage", "gitops"} {
		if w.started(layer) {
			w.t.Errorf("the layer %s was started", layer)
		}
	}
}

// TestWhatInfisicalHidesOrHoldsBackIsNamedBeforeAnyMachine: a role that may only describe, one of another path, and changes that wait for an
// approval. Infisical itself names no secret in the first case, and is silent in the second.
func TestWhatInfisicalHidesOrHoldsBackIsNamedBeforeAnyMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	const identity = "give the machine identity of INFISICAL_CLIENT_ID "

	w.on("secret-hidden=all")
	want := []string{}
	for _, name := range []string{"GITOPS_USERNAME", "GITOPS_TOKEN", "GITOPS_CA", "SOPS_AGE_KEY"} {
		want = append(want, name+" may be seen but not read by the identity in Infisical")
	}
	want = append(want, "path /clusters/sandbox/flux: "+identity+`"Read Value" (readValue) on this secret`)
	w.castle("create").failsWith(append(want, "layer secrets failed", resumes)...)
	w.nothingWasMade()
	w.castle("secrets-check").failsWith(want...)
	rows, _ := w.doctor()
	if found := rows["secrets complete"]; len(found) != 4 || found[0].Verdict != preflight.Failed || !strings.Contains(found[0].Fix, "Read Value") {
		t.Errorf("doctor says %+v", found)
	}

	w.off(syscall.SIGTERM)
	w.on("infisical-paths=/clusters/another")
	refused := w.castle("create").failsWith("GITOPS_TOKEN may not be seen by the identity, whether it is there or not", "GITOPS_USERNAME may not be seen",
		identity+`"Describe Secret" and "Read Value" (describeSecret, readValue) on secrets in this path`, resumes)
	if said := refused.stderr.String(); strings.Contains(said, "add it there") {
		t.Errorf("what is there is to be added:\n%s", said)
	}
	w.nothingWasMade()

	w.off(syscall.SIGTERM)
	w.on("infisical-approval=/clusters/*")
	w.castle("create").failsWith("layer secrets failed", "cannot keep TALOS_SECRETS: the change waits for an approval",
		"have machine identities bypass the change policy of this path", resumes)
	w.nothingWasMade()
	if w.infisical()["TALOS_SECRETS"] != "" {
		t.Error("the machine secrets are kept before anybody has approved them")
	}
}

// TestWhoMayNotKeepWhatOpensTheClusterMakesNone: where the PKI is there already, as after a cluster that was destroyed, nothing else would be
// written before the cluster is up.
func TestWhoMayNotKeepWhatOpensTheClusterMakesNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	tell.Fault(t, "the PKI is in Infisical, and the machine identity may only read there")
	pki, err := machineconfig.NewSecrets(w.cluster)
	if err != nil {
		t.Fatal(err)
	}
	seed := filepath.Join(w.live, "world.yaml")
	data, err := os.ReadFile(seed)
	if err != nil {
		t.Fatal(err)
	}
	const place, life = "          /clusters/sandbox: {}", "          tokenTTL: 2h\n"
	indented := strings.ReplaceAll(strings.TrimSpace(string(pki)), "\n", "\n              ")
	readOnly := strings.Replace(string(data), place, "          /clusters/sandbox:\n            TALOS_SECRETS: |\n              "+indented+"\n           ", 1)
	readOnly = strings.Replace(readOnly, life, life+"          readOnly: true\n", 1)
	if err := os.WriteFile(seed, []byte(readOnly), 0o644); err != nil {
		t.Fatal(err)
	}
	w.on()
	w.castle("create").failsWith("no machine was made, since the talosconfig of cluster sandbox is not kept", "You are not allowed to create on secrets",
		"the permission to create secrets in this path", resumes)
	w.nothingWasMade()
	if w.infisical()["TALOS_SECRETS"] == "" {
		t.Error("the PKI was not there")
	}
}

// TestASandboxOfBeforeTheIdentitiesIsTakenOver: its world.yaml and SOPS file know one identity, and one folder holds everything.
func TestASandboxOfBeforeTheIdentitiesIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", without(networkingFolder, storageFolder)...)
	seed, place := w.seed(), w.cluster.Secrets.Infisical
	project := &seed.Infisical.Projects[0]
	project.Clients = project.Clients[:1]
	flux := project.Environments[place.Environment][place.FluxPath]
	project.Environments[place.Environment] = map[string]map[string]string{place.Path: flux}
	data, err := yaml.Marshal(seed)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.live, "world.yaml"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	values := w.sopsValues()
	maps.DeleteFunc(values, func(name, _ string) bool {
		return strings.HasPrefix(name, "INFISICAL_FLUX_") || strings.HasPrefix(name, "INFISICAL_WORKLOADS_")
	})
	w.writeSOPS("secrets.sops.yaml", values)
	w.on()
	tell.Fault(t, "Infisical has one folder for everything, and the cluster has one identity")

	w.castle("create").succeeds()
	w.kubernetes(w.unsealed("kubeconfig")).follows(w.head(), seedTag)
	w.castle("create").succeeds()
	rows, _ := w.doctor()
	if found := rows["secrets identities"]; len(found) != 1 || found[0].Verdict != preflight.OK {
		t.Errorf("doctor says %+v", found)
	}
	w.leaksNothing()
}
