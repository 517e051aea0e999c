package secretadmin

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/test/sopstest"
)

// newCluster is blue without Infisical, with such a list of SOPS files, of which those with names in them are there.
func newCluster(t *testing.T, key *age.X25519Identity, list string, files map[string][]string) *run.Cluster {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "blue")
	text, err := os.ReadFile("../../../terragrunt/live/blue/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile(`(?m)^  sops: .*\n  infisical:\n(    .*\n)+`)
	text = section.ReplaceAll(text, []byte("  sops: "+list+"\n  infisical: none\n"))
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, config.File), text, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, names := range files {
		values := map[string]string{}
		for _, secret := range names {
			values[secret] = "canary-of-" + secret
		}
		sopstest.Write(t, filepath.Join(folder, name), key.Recipient().String(), values)
	}
	return &run.Cluster{Folder: folder, AgeKey: "# a comment\n" + key.String() + "\n"}
}

func TestThePKIIsMadeOnceAsTheFileThatIsMissing(t *testing.T) {
	key := sopstest.NewKey(t)
	cluster := newCluster(t, key, "[a.sops.yaml, pki.sops.yaml]", map[string][]string{"a.sops.yaml": {"GITOPS_TOKEN"}})
	said, err := Begin(cluster, cluster.Folder)
	if err != nil || !strings.Contains(said, "pki.sops.yaml holds the PKI of cluster blue, encrypted to "+key.Recipient().String()) {
		t.Fatalf("%s, %v", said, err)
	}
	file := filepath.Join(cluster.Folder, "pki.sops.yaml")
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	names, recipients, err := secrets.Names(file, cluster.AgeKey)
	if err != nil || !slices.Equal(names, []string{"TALOS_SECRETS"}) || !slices.Equal(recipients, []string{key.Recipient().String()}) {
		t.Errorf("it holds %v for %v, %v", names, recipients, err)
	}
	if strings.Contains(string(first), "PRIVATE") || strings.Contains(string(first), "LS0tLS1") {
		t.Errorf("the file is in clear:\n%s", first)
	}
	if _, err := Begin(cluster, cluster.Folder); err == nil || !strings.Contains(err.Error(), "holds TALOS_SECRETS already, and nothing was made") {
		t.Errorf("a second one: %v", err)
	}
	if second, err := os.ReadFile(file); err != nil || string(second) != string(first) {
		t.Errorf("the file was changed: %v", err)
	}
}

func TestAPKIThatWouldNotBeReadOrKeptIsNotMade(t *testing.T) {
	key := sopstest.NewKey(t)
	for name, test := range map[string]struct {
		list  string
		files map[string][]string
		want  string
	}{
		"every file is there":   {"a.sops.yaml", map[string][]string{"a.sops.yaml": {"GITOPS_TOKEN"}}, "add a name for the PKI's to the list"},
		"one holds a PKI":       {"[a.sops.yaml, b.sops.yaml]", map[string][]string{"a.sops.yaml": {"TALOS_SECRETS"}}, "holds TALOS_SECRETS already"},
		"two are missing":       {"[a.sops.yaml, b.sops.yaml]", nil, "a.sops.yaml and b.sops.yaml are named in secrets.sops and not there"},
		"the key does not open": {"[c.sops.yaml, b.sops.yaml]", map[string][]string{"c.sops.yaml": {"GITOPS_TOKEN"}}, "wrong age key"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t, key, test.list, test.files)
			if strings.Contains(name, "key") {
				cluster.AgeKey = sopstest.NewKey(t).String()
			}
			out := t.TempDir()
			_, err := Begin(cluster, out)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v", err)
			}
			if made, _ := os.ReadDir(out); len(made) > 0 {
				t.Errorf("made was %v", made)
			}
		})
	}
	t.Run("Infisical keeps it", func(t *testing.T) {
		_, err := Begin(&run.Cluster{Folder: "../../../terragrunt/live/blue", AgeKey: key.String()}, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "keeps its PKI in Infisical") {
			t.Errorf("got %v", err)
		}
	})
}
