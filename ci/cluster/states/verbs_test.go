package states

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
	"tazlab.net/castle/ci/test/sopstest"
)

const copied = "20260102T120000.000Z"

// now and before are states of the layer platform, as OpenTofu encrypts them.
var now, before = encrypted(7), encrypted(6)

func encrypted(serial int) []byte {
	return fmt.Appendf(nil, `{"serial":%d,"lineage":"x","meta":{},"encrypted_data":"%032d","encryption_version":"v0"}`, serial, serial)
}

// kept is blue with its states in a folder: one of the layer platform and a copy of it.
func kept(t *testing.T) *run.Cluster {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "blue")
	text, err := os.ReadFile("../../../terragrunt/live/blue/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	start, _, _ := strings.Cut(string(text), "  infisical:\n")
	key := sopstest.NewKey(t)
	c := &run.Cluster{Folder: folder, State: t.TempDir(), AgeKey: key.String(), LocalStates: true, Out: t.Output(), Tools: run.Tools{Tofu: "tofu"}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(folder, 0o700))
	must(os.WriteFile(filepath.Join(folder, config.File), []byte(start+"  infisical: none\nstate:\n  backend: local\n"), 0o600))
	values := map[string]string{secrets.StatePassphrase: "a passphrase that is long", secrets.ProxmoxAPIToken: "castle@pve!test=5f8a9c0e-0000-4000-8000-0123456789ab",
		secrets.GitOpsUsername: "flux", secrets.GitOpsToken: "token", secrets.FluxAgeKey: key.String()}
	sopstest.Write(t, filepath.Join(folder, "secrets.sops.yaml"), key.Recipient().String(), values)
	must(c.Load())
	pki, err := machineconfig.NewSecrets(c.Description)
	must(err)
	values[secrets.TalosSecrets] = string(pki)
	sopstest.Write(t, filepath.Join(folder, "secrets.sops.yaml"), key.Recipient().String(), values)

	access, err := c.Open(t.Context())
	must(err)
	me, err := c.Identity(access.Values)
	must(err)
	must(c.StateFiles(access.Values).Own(t.Context(), me, time.Now()))
	must(os.MkdirAll(filepath.Join(c.State, layers.Platform, "copies"), 0o700))
	must(os.WriteFile(filepath.Join(c.State, layers.Platform, "terraform.tfstate"), now, 0o600))
	must(os.WriteFile(filepath.Join(c.State, layers.Platform, "copies", copied+".tfstate"), before, 0o600))
	return c
}

// files are all of a folder, but for the lock of the kernel's, which is empty, and who had it.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "lock" || name == "id" {
			return err
		}
		data, err := fs.ReadFile(os.DirFS(folder), name)
		found[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestWhatChangesAStateIsRefusedUnlessItIsMeant(t *testing.T) {
	c := kept(t)
	was := files(t, c.State)
	for name, refused := range map[string]struct {
		call func() (string, error)
		says string
	}{
		"a layer that is none":   {func() (string, error) { return Restore(t.Context(), c, "plattform", copied, "blue") }, `there is no layer "plattform"`},
		"an unconfirmed restore": {func() (string, error) { return Restore(t.Context(), c, layers.Platform, copied, "green") }, "confirm with --confirm blue"},
		"a copy that is none": {func() (string, error) {
			return Restore(t.Context(), c, layers.Platform, "20250102T120000.000Z", "blue")
		}, "20250102T120000.000Z"},
		"an unconfirmed import":        {func() (string, error) { return Import(t.Context(), c, "archive", false, "") }, "confirm with --confirm blue"},
		"an archive that is not there": {func() (string, error) { return Import(t.Context(), c, "/no/archive", false, "blue") }, "/no/archive"},
		"an unconfirmed move":          {func() (string, error) { return Migrate(t.Context(), c, "s3://bucket", "") }, "confirm with --confirm blue"},
		"a move to where they are":     {func() (string, error) { return Migrate(t.Context(), c, "local", "blue") }, "are in local by its description already"},
		"a place that is none":         {func() (string, error) { return Migrate(t.Context(), c, "https://bucket", "blue") }, `--from "https://bucket" is neither "local" nor`},
		"a place with another word":    {func() (string, error) { return Migrate(t.Context(), c, "s3://bucket?zone=a", "blue") }, `has "zone"; known are endpoint and region`},
		"a recipient that is none": {func() (string, error) {
			return Export(t.Context(), c, filepath.Join(t.TempDir(), "out"), []string{"age1x"})
		}, `the recipient "age1x"`},
		"a lock that nobody holds": {func() (string, error) { return Unlock(t.Context(), c, "AB") }, "no lock outlives its process"},
	} {
		if _, err := refused.call(); err == nil || !strings.Contains(err.Error(), refused.says) {
			t.Errorf("%s: %v", name, err)
		}
		if is := files(t, c.State); !maps.Equal(is, was) {
			t.Errorf("%s: the folder had %q and has %q", name, slices.Sorted(maps.Keys(was)), slices.Sorted(maps.Keys(is)))
		}
	}
}

func TestACopyIsPutInTheStatesPlaceWhichBecomesOne(t *testing.T) {
	c := kept(t)
	if said, err := Restore(t.Context(), c, layers.Platform, copied, "blue"); err != nil || !strings.Contains(said, "the state of layer platform is that of "+copied) {
		t.Fatalf("%q, %v", said, err)
	}
	is := files(t, c.State)
	// OpenTofu takes a state of a higher serial for the newer one.
	if got := is["platform/terraform.tfstate"]; !strings.Contains(got, fmt.Sprintf("%032d", 6)) {
		t.Errorf("the state is %s", got)
	}
	var copies []string
	for name, text := range is {
		if strings.HasPrefix(name, "platform/copies/") {
			copies = append(copies, text)
		}
	}
	if !slices.ContainsFunc(copies, func(text string) bool { return bytes.Equal([]byte(text), now) }) {
		t.Errorf("no copy is the state that was there: %q", copies)
	}
	list, err := List(t.Context(), c)
	if err == nil && len(list.Locks) > 0 {
		err = errors.New("it is still locked")
	}
	if err != nil {
		t.Error(err)
	}
}

// What a run of the same folder works on, nobody else changes.
func TestStatesAreNotChangedBesideARun(t *testing.T) {
	c := kept(t)
	unlock, err := c.Lock()
	if err != nil {
		t.Fatal(err)
	}
	was := files(t, c.State)
	var wait sync.WaitGroup
	for name, call := range map[string]func(*run.Cluster) (string, error){
		"restore": func(c *run.Cluster) (string, error) { return Restore(t.Context(), c, layers.Platform, copied, "blue") },
		"unlock":  func(c *run.Cluster) (string, error) { return Unlock(t.Context(), c, "AB") },
		"export": func(c *run.Cluster) (string, error) {
			return Export(t.Context(), c, filepath.Join(t.TempDir(), "out"), nil)
		},
		"import":  func(c *run.Cluster) (string, error) { return Import(t.Context(), c, "archive", false, "blue") },
		"migrate": func(c *run.Cluster) (string, error) { return Migrate(t.Context(), c, "s3://bucket", "blue") },
	} {
		own := *c
		wait.Go(func() { // each looks for some seconds whether it is a dead run's child that has the lock
			if _, err := call(&own); err == nil || !strings.Contains(err.Error(), "cluster blue is locked by") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wait.Wait()
	if is := files(t, c.State); !maps.Equal(is, was) {
		t.Errorf("the folder had %q and has %q", was, is)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), c, layers.Platform, copied, "blue"); err != nil {
		t.Errorf("after the run: %v", err)
	}
}
