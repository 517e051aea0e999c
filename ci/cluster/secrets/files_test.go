package secrets

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/test/sopstest"
)

// withoutInfisical is a complete cluster whose secrets stand in two SOPS files; edit may take things away before these are written.
func withoutInfisical(t *testing.T, edit func(first, second map[string]string)) *world {
	t.Helper()
	w := newWorld(t, nil)
	first, second := map[string]string{}, map[string]string{TalosSecrets: canary(t)}
	for name, value := range w.bootstrap {
		if name != InfisicalClientID && name != InfisicalClientSecret {
			first[name] = value
		}
	}
	for name, value := range w.remote {
		first[name] = value
	}
	w.cluster.Secrets = config.Secrets{SOPS: []string{"secrets.sops.yaml", "talos.secrets.sops.yaml"}}
	if edit != nil {
		edit(first, second)
	}
	key := sopstest.NewKey(t)
	w.in.AgeKey = key.String()
	w.bootstrap = first
	w.encrypt(key.Recipient().String())
	if len(second) > 0 {
		sopstest.Write(t, filepath.Join(w.in.Folder, "talos.secrets.sops.yaml"), key.Recipient().String(), second)
	}
	return w
}

func TestWithoutInfisicalAllSecretsComeFromTheFiles(t *testing.T) {
	w := withoutInfisical(t, nil)
	values := w.resolved()
	for _, entry := range values.Inventory() {
		if entry.Source != SourceSOPS {
			t.Errorf("%s came from %s", entry.Name, entry.Source)
		}
	}
	for _, name := range []string{GitOpsToken, FluxAgeKey, StatePassphrase, TalosSecrets} {
		if _, has := values.Get(name); !has {
			t.Errorf("%s is not there", name)
		}
	}
	if len(w.calls) > 0 {
		t.Errorf("Infisical was asked %v", w.calls)
	}
	if _, err := values.Keep(t.Context(), AdminKubeconfig, "text"); err == nil || !strings.Contains(err.Error(), "the cluster has no Infisical") {
		t.Errorf("kept: %v", err)
	}
}

func TestWithoutInfisicalAllThatIsMissingIsNamedAtOnce(t *testing.T) {
	w := withoutInfisical(t, func(first, second map[string]string) {
		delete(first, GitOpsToken)
		delete(first, StatePassphrase)
		first[FluxAgeKey] = "age1publicnotprivate"
		clear(second)
	})
	err := w.fails()
	var incomplete *IncompleteError
	if !errors.As(err, &incomplete) || len(incomplete.Problems) != 5 {
		t.Fatalf("got %v", err)
	}
	second := filepath.Join(w.in.Folder, "talos.secrets.sops.yaml")
	in := w.file() + " or " + second + ": "
	for _, line := range []string{
		second + " is named in secrets.sops and does not exist",
		"GITOPS_TOKEN is missing in " + in + "set it with \"sops edit " + w.file() + "\"",
		"STATE_PASSPHRASE is missing in " + in,
		"SOPS_AGE_KEY is not an age key (AGE-SECRET-KEY-1…) in " + in,
		"TALOS_SECRETS is missing in " + in + "make it with \"dagger call secrets-init --cluster blue",
	} {
		if !strings.Contains(err.Error(), "\n  "+line) {
			t.Errorf("%q is not said in:\n%v", line, err)
		}
	}
}

func TestANameThatStandsInTwoFilesIsRefused(t *testing.T) {
	w := withoutInfisical(t, func(first, second map[string]string) { second[GitOpsToken] = "another one" })
	if err := w.fails(); !strings.Contains(err.Error(), "GITOPS_TOKEN stands in both "+w.file()+" and ") || strings.Contains(err.Error(), "another one") {
		t.Errorf("got %v", err)
	}
}

func TestEachFileThatCannotBeReadIsNamed(t *testing.T) {
	w := withoutInfisical(t, nil)
	w.in.AgeKey = sopstest.NewKey(t).String()
	if err := w.fails(); strings.Count(err.Error(), "wrong age key: ") != 2 || !strings.Contains(err.Error(), "talos.secrets.sops.yaml") {
		t.Errorf("got %v", err)
	}
}

func TestNamesHoldNoValue(t *testing.T) {
	w := withoutInfisical(t, nil)
	names, recipients, err := Names(w.file(), w.in.AgeKey)
	if err != nil || len(recipients) != 1 || !strings.HasPrefix(recipients[0], "age1") || !slices.Contains(names, GitOpsToken) || len(names) != len(w.bootstrap) {
		t.Errorf("%v, %v, %v", names, recipients, err)
	}
}
