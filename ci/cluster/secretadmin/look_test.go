package secretadmin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/test/sopstest"
)

func states(l *Listing) map[string]string {
	all := map[string]string{}
	for _, seen := range l.Secrets {
		all[seen.Name] = seen.State
	}
	return all
}

func TestAListShowsNamesAndNoValue(t *testing.T) {
	key := sopstest.NewKey(t)
	cluster := newCluster(t, key, "[a.sops.yaml, b.sops.yaml]", map[string][]string{"a.sops.yaml": {"GITOPS_TOKEN", "GITOPS_USERNAME", "SOPS_AGE_KEY", "EXTRA"}, "b.sops.yaml": {"TALOS_SECRETS"}})
	listing, err := List(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	got := states(listing)
	for name, want := range map[string]string{"GITOPS_TOKEN": "present", "SOPS_AGE_KEY": "unfit", "STATE_PASSPHRASE": "missing", "PROXMOX_API_TOKEN": "missing", "GITOPS_CA": "later", "EXTRA": "present", "TALOS_SECRETS": "present"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, format := range []string{"TEXT", "json", "markdown"} {
		text, err := rendering.As(format, listing)
		if err != nil || strings.Contains(text, "canary") || !strings.Contains(text, filepath.Join(cluster.Folder, "b.sops.yaml")) {
			t.Errorf("%v\n%s", err, text)
		}
	}
	_, err = Check(t.Context(), cluster)
	if err == nil || strings.Count(err.Error(), "\n") != 5 || strings.Contains(err.Error(), "canary") {
		t.Fatalf("the check says %v", err)
	}
	for _, want := range []string{"SOPS_AGE_KEY is not an age key", "STATE_PASSPHRASE is missing in " + cluster.Folder, "PROXMOX_API_TOKEN is missing in "} {
		if !strings.Contains(err.Error(), "\n  "+want) {
			t.Errorf("%q is not said in %v", want, err)
		}
	}
}

// One source that cannot be read is no reason to be silent of the other.
func TestASourceThatCannotBeReadIsToldBesideTheRest(t *testing.T) {
	key := sopstest.NewKey(t)
	cluster := newCluster(t, key, "[a.sops.yaml, b.sops.yaml]", map[string][]string{"a.sops.yaml": {"GITOPS_TOKEN"}})
	sopstest.Write(t, filepath.Join(cluster.Folder, "b.sops.yaml"), sopstest.NewKey(t).Recipient().String(), map[string]string{"TALOS_SECRETS": "canary"})
	listing, err := List(t.Context(), cluster)
	if err != nil || len(listing.Unread) != 1 || !strings.Contains(listing.Unread[0], "wrong age key") {
		t.Fatalf("%+v, %v", listing, err)
	}
	if got := states(listing); got["GITOPS_TOKEN"] != secrets.StatePresent || got["TALOS_SECRETS"] != secrets.StateUnknown {
		t.Errorf("the states are %v", got)
	}
	if _, err := Check(t.Context(), cluster); err == nil || !strings.Contains(err.Error(), "wrong age key") {
		t.Errorf("the check says %v", err)
	}
	if _, err := json.Marshal(listing); err != nil {
		t.Error(err)
	}
}

func TestAClusterThatLacksNothingIsToldSo(t *testing.T) {
	key := sopstest.NewKey(t)
	cluster := newCluster(t, key, "a.sops.yaml", nil)
	sopstest.Write(t, filepath.Join(cluster.Folder, "a.sops.yaml"), key.Recipient().String(), map[string]string{
		"GITOPS_USERNAME": "flux", "GITOPS_TOKEN": "canary-token", "SOPS_AGE_KEY": key.String(), "TALOS_SECRETS": "canary-pki", "EXTRA": "canary-extra",
		"AWS_ACCESS_KEY_ID": "canary-id", "AWS_SECRET_ACCESS_KEY": "canary-key",
		"STATE_PASSPHRASE": "canary-passphrase-long", "PROXMOX_API_TOKEN": "castle@pve!blue=01234567-89ab-4cde-8f01-23456789abcd"})
	listing, err := Check(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	if got := states(listing); len(got) != 9 || got["TALOS_SECRETS"] != secrets.StatePresent || got["EXTRA"] != "" {
		t.Errorf("the states are %v", got)
	}
	if _, err := os.Stat(filepath.Join(cluster.Folder, "runs")); err == nil {
		t.Error("a look left a record")
	}
}
