package secretadmin

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/secrets/sopsfile"
	"tazlab.net/castle/ci/test/sopstest"
)

// rotating is a cluster with three SOPS files, one of them in a folder and not named in cluster.yaml, and with rules for new ones.
func rotating(t *testing.T, old *age.X25519Identity) *run.Cluster {
	t.Helper()
	cluster := newCluster(t, old, "[a.sops.yaml, b.sops.yaml]", map[string][]string{"a.sops.yaml": {"GITOPS_TOKEN", "STATE_PASSPHRASE"}, "b.sops.yaml": {"TALOS_SECRETS"}})
	if err := os.Mkdir(filepath.Join(cluster.Folder, "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	sopstest.Write(t, filepath.Join(cluster.Folder, "more", "c.yaml"), old.Recipient().String(), map[string]string{"OTHER": "canary-of-OTHER"})
	rule := "# who opens new files\ncreation_rules:\n  - path_regex: .*\\.sops\\.yaml # all\n    age: " + old.Recipient().String() + "\n"
	if err := os.WriteFile(filepath.Join(cluster.Folder, ".sops.yaml"), []byte(rule), 0o644); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// content is every file below a folder.
func content(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		relative, _ := filepath.Rel(folder, name)
		all[relative] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var sopsFiles = []string{"a.sops.yaml", "b.sops.yaml", filepath.Join("more", "c.yaml")}

// opens fails the test unless a key opens all SOPS files and another one none, and .sops.yaml names the first alone.
func opens(t *testing.T, folder string, key, not *age.X25519Identity) {
	t.Helper()
	for _, name := range sopsFiles {
		file := filepath.Join(folder, name)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if clear, err := sopsfile.Decrypt(file, data, key.String()); err != nil || !strings.Contains(string(clear), "canary-of-") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := sopsfile.Decrypt(file, data, not.String()); err == nil {
			t.Errorf("%s is opened by the other key, too", name)
		}
	}
	rule, err := os.ReadFile(filepath.Join(folder, ".sops.yaml"))
	if err != nil || !strings.Contains(string(rule), "age: "+key.Recipient().String()+"\n") || strings.Contains(string(rule), not.Recipient().String()) || !strings.Contains(string(rule), " # all\n") {
		t.Errorf("%v: the rules are\n%s", err, rule)
	}
}

func TestEveryFileIsForTheNewKey(t *testing.T) {
	old, next := sopstest.NewKey(t), sopstest.NewKey(t)
	for name, rotation := range map[string]Rotation{"by the key": {Key: next.String()}, "by its public part": {Recipient: next.Recipient().String()}} {
		t.Run(name, func(t *testing.T) {
			cluster := rotating(t, old)
			before := content(t, cluster.Folder)
			rotation.Out = filepath.Join(t.TempDir(), "out")
			said, err := RotateAge(cluster, rotation)
			if err != nil {
				t.Fatal(err)
			}
			if got := content(t, cluster.Folder); !maps.Equal(got, before) {
				t.Error("the cluster's own folder was changed, which was not asked for")
			}
			if made := content(t, rotation.Out); len(made) != 4 {
				t.Errorf("made are %d files", len(made))
			}
			opens(t, rotation.Out, next, old)
			if strings.Contains(said, "SECRET-KEY") || strings.Contains(said, "canary") || strings.Count(said, " in the place of ") != 4 {
				t.Errorf("it says\n%s", said)
			}
		})
	}
}

func TestARotationThatWasKilledIsGoneOnWith(t *testing.T) {
	old, next := sopstest.NewKey(t), sopstest.NewKey(t)
	cluster := rotating(t, old)
	rotation := Rotation{Key: next.String(), Out: cluster.Folder}
	// The kill came after the first of the files.
	file := filepath.Join(cluster.Folder, "a.sops.yaml")
	data, err := os.ReadFile(file)
	if err == nil {
		data, err = sopsfile.Rotate(file, data, old.String(), next.Recipient().String())
	}
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	said, err := RotateAge(cluster, rotation)
	if err != nil || !strings.Contains(said, "a.sops.yaml: had the new key already") {
		t.Fatalf("%s, %v", said, err)
	}
	opens(t, cluster.Folder, next, old)
	after := content(t, cluster.Folder)
	if after["a.sops.yaml"] != string(data) {
		t.Error("what was done was done again")
	}
	// All is done: a further call changes nothing.
	if said, err := RotateAge(cluster, rotation); err != nil || strings.Count(said, "had the new key already") != 3 || !maps.Equal(content(t, cluster.Folder), after) {
		t.Errorf("%s, %v", said, err)
	}
	if names, _, err := secrets.Names(file, next.String()); err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestARotationThatCannotBeWholeChangesNothing(t *testing.T) {
	old, next, stranger := sopstest.NewKey(t), sopstest.NewKey(t), sopstest.NewKey(t)
	for name, test := range map[string]struct {
		spoil    func(folder string)
		rotation Rotation
		want     []string
	}{
		"two files are others'": {func(folder string) {
			for _, name := range []string{"b.sops.yaml", "more/c.yaml"} {
				sopstest.Write(t, filepath.Join(folder, name), stranger.Recipient().String(), map[string]string{"A": "canary-of-A"})
			}
		}, Rotation{Key: next.String()}, []string{"nothing was changed", "b.sops.yaml: wrong age key", "c.yaml: wrong age key"}},
		"one was tampered with": {func(folder string) {
			file := filepath.Join(folder, "more", "c.yaml")
			data, _ := os.ReadFile(file)
			_ = os.WriteFile(file, []byte(strings.Replace(string(data), "OTHER:", "ANOTHER:", 1)), 0o600)
		}, Rotation{Key: next.String()}, []string{"nothing was changed", "c.yaml was changed after it was encrypted"}},
		"the new key is the old one":   {nil, Rotation{Key: old.String()}, []string{"the new key is the old one"}},
		"there is no new key":          {nil, Rotation{}, []string{"secrets-age-key makes one"}},
		"there are two":                {nil, Rotation{Key: next.String(), Recipient: stranger.Recipient().String()}, []string{"and not both"}},
		"the new key is none":          {nil, Rotation{Key: "AGE-SECRET-KEY-1NONSENSE"}, []string{"the new key: what was given as age key is none"}},
		"its public part is a private": {nil, Rotation{Recipient: "AGE-SECRET-KEY-1NONSENSE"}, []string{"is not the public part of an age key"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := rotating(t, old)
			if test.spoil != nil {
				test.spoil(cluster.Folder)
			}
			before := content(t, cluster.Folder)
			test.rotation.Out = cluster.Folder
			_, err := RotateAge(cluster, test.rotation)
			if err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), old.String()) {
				t.Fatalf("got %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not said in %v", want, err)
				}
			}
			if !maps.Equal(content(t, cluster.Folder), before) {
				t.Error("something was changed")
			}
		})
	}
}

// A file that cannot be put where it belongs is found before another one is replaced.
func TestNoFileIsReplacedWhereOneHasNoPlace(t *testing.T) {
	old, next := sopstest.NewKey(t), sopstest.NewKey(t)
	cluster := rotating(t, old)
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "more"), []byte("a file where a folder belongs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := RotateAge(cluster, Rotation{Key: next.String(), Out: out}); err == nil {
		t.Fatal("it was written nowhere")
	}
	if left := content(t, out); len(left) != 1 {
		t.Errorf("left are %d files", len(left))
	}
}

func TestANewKeyOpensWhatIsEncryptedToIt(t *testing.T) {
	text, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	recipients, err := sopsfile.Recipients(string(text))
	if err != nil || len(recipients) != 1 || !strings.Contains(string(text), "# public key: "+recipients[0]+"\n") {
		t.Errorf("%v, %v", recipients, err)
	}
}
