package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/create"
	"tazlab.net/castle/ci/cluster/destroy"
	"tazlab.net/castle/ci/cluster/forget"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/plan"
	"tazlab.net/castle/ci/cluster/removenode"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/states"
	"tazlab.net/castle/ci/cluster/status"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
	"tazlab.net/castle/ci/cluster/wipe"
	"tazlab.net/castle/ci/sandbox/proxmox"
	"tazlab.net/castle/ci/test/sopstest"
	story "tazlab.net/castle/ci/test/tell" // the package has a function of that name
)

const (
	token     = "castle@pve!test=5f8a9c0e-0000-4000-8000-0123456789ab"
	layersDir = "../../../terragrunt"
)

// shared is what two repositories have in common that know nothing of each other: a Proxmox, and an engine or a
// store for their states.
type shared struct {
	t           *testing.T
	proxmox     *httptest.Server
	fingerprint string
	store       *httptest.Server
	bucket      gofakes3.Backend
}

func newShared(t *testing.T) *shared {
	t.Helper()
	simulator, err := proxmox.New(proxmox.Options{File: filepath.Join(t.TempDir(), "proxmox.json"), Tokens: []string{token},
		Nodes: []proxmox.Node{{Name: "proxmox"}}, Privileges: map[string][]string{"/": hypervisor.Privileges()},
		Storages: []proxmox.Storage{{ID: "local-lvm", Type: "lvmthin", Content: "images,rootdir", Bytes: 1 << 40}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(simulator.Close)
	s := &shared{t: t, proxmox: httptest.NewUnstartedServer(simulator), bucket: s3mem.New()}
	s.proxmox.Config = simulator.HTTP()
	s.proxmox.StartTLS()
	t.Cleanup(s.proxmox.Close)
	s.fingerprint = strings.ReplaceAll(fmt.Sprintf("% X", sha256.Sum256(s.proxmox.Certificate().Raw)), " ", ":")
	if err := s.bucket.CreateBucket("tazlab-states"); err != nil {
		t.Fatal(err)
	}
	s.store = httptest.NewServer(gofakes3.New(s.bucket).Server())
	t.Cleanup(s.store.Close)
	return s
}

// repository describes blue for somebody, with secrets of their own in one SOPS file. Its states are in a folder
// or, where that is given, in the bucket.
func (s *shared) repository(who, state string, inBucket bool) *run.Cluster {
	t := s.t
	t.Helper()
	folder := filepath.Join(t.TempDir(), who, "blue")
	text, err := os.ReadFile(layersDir + "/live/blue/cluster.yaml")
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	before, after, _ := strings.Cut(string(text), "  infisical:\n")
	_, after, _ = strings.Cut(after, "state:\n")
	if !inBucket {
		after = "  backend: local\n"
	}
	described := strings.NewReplacer("https://192.168.1.10:8006/", s.proxmox.URL, "https://s3.example.com", s.store.URL,
		"tazzo/tazlab-k8s", who+"/k8s",
		"16:47:76:88:C0:E0:06:99:C6:CF:A4:49:7A:36:12:D7:E8:3C:53:20:62:B6:4B:25:0F:ED:89:08:12:8E:D5:48", s.fingerprint,
	).Replace(before + "  infisical: none\nstate:\n" + after)
	if err := os.WriteFile(filepath.Join(folder, config.File), []byte(described), 0o600); err != nil {
		t.Fatal(err)
	}
	key := sopstest.NewKey(t)
	values := map[string]string{secrets.StatePassphrase: "a passphrase of " + who, secrets.ProxmoxAPIToken: token,
		secrets.AWSAccessKeyID: "key", secrets.AWSSecretAccessKey: "secret",
		secrets.GitOpsUsername: "flux", secrets.GitOpsToken: "token", secrets.FluxAgeKey: key.String()}
	sopstest.Write(t, filepath.Join(folder, "secrets.sops.yaml"), key.Recipient().String(), values)
	c := &run.Cluster{Folder: folder, Layers: layersDir, State: state, AgeKey: key.String(), LocalStates: true,
		Out: t.Output(), Tools: run.Tools{Tofu: "tofu"}}
	if err := c.Load(); err != nil {
		t.Fatal(err)
	}
	pki, err := machineconfig.NewSecrets(c.Description)
	if err != nil {
		t.Fatal(err)
	}
	values[secrets.TalosSecrets] = string(pki)
	sopstest.Write(t, filepath.Join(folder, "secrets.sops.yaml"), key.Recipient().String(), values)
	return c
}

// begun has a cluster own its places, as an interrupted first create leaves them: with a record, a note of a VM
// and no state yet.
func (s *shared) begun(c *run.Cluster) {
	s.t.Helper()
	values, err := secrets.FromFiles(c.Description, secrets.Inputs{Folder: c.Folder, AgeKey: c.AgeKey})
	if err != nil {
		s.t.Fatal(err)
	}
	me, err := c.Identity(values)
	if err == nil {
		err = c.StateFiles(values).Own(s.t.Context(), me, time.Now())
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(c.State, "runs", "20260102T120000.000Z-create"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(c.State, "unfinished.json"), []byte("{}"), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// bytes are all that is in a folder and in the bucket.
func (s *shared) bytes(folder string) map[string]string {
	s.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			found[name] = "folder"
			return err
		}
		data, err := os.ReadFile(name)
		found[name] = string(data)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := s.bucket.ListBucket("tazlab-states", nil, gofakes3.ListBucketPage{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, object := range list.Contents {
		found[object.Key] = object.ETag
	}
	return found
}

// verbs are all that read states, or write or remove what is found by the cluster's name.
var verbs = map[string]func(context.Context, *run.Cluster) error{
	"create": func(ctx context.Context, c *run.Cluster) error {
		return errorOf(create.Execute(ctx, c, create.Options{}))
	},
	"plan":   func(ctx context.Context, c *run.Cluster) error { return errorOf(plan.Execute(ctx, c)) },
	"status": func(ctx context.Context, c *run.Cluster) error { return errorOf(status.Execute(ctx, c)) },
	"destroy": func(ctx context.Context, c *run.Cluster) error {
		return errorOf(destroy.Execute(ctx, c, destroy.Options{Confirm: "blue"}))
	},
	"wipe, listed": func(ctx context.Context, c *run.Cluster) error { return errorOf(wipe.Execute(ctx, c, wipe.Options{})) },
	"wipe": func(ctx context.Context, c *run.Cluster) error {
		return errorOf(wipe.Execute(ctx, c, wipe.Options{Confirm: "blue"}))
	},
	"remove-node": func(ctx context.Context, c *run.Cluster) error {
		return errorOf(removenode.Execute(ctx, c, removenode.Options{Node: "gone", Confirm: "gone"}))
	},
	"state-list":   func(ctx context.Context, c *run.Cluster) error { return errorOf(states.List(ctx, c)) },
	"state-show":   func(ctx context.Context, c *run.Cluster) error { return errorOf(states.Show(ctx, c, "platform")) },
	"state-unlock": func(ctx context.Context, c *run.Cluster) error { return errorOf(states.Unlock(ctx, c, "any")) },
	"state-restore": func(ctx context.Context, c *run.Cluster) error {
		return errorOf(states.Restore(ctx, c, "platform", "20260102T120000.000Z", "blue"))
	},
	"state-export": func(ctx context.Context, c *run.Cluster) error {
		return errorOf(states.Export(ctx, c, filepath.Join(c.Folder, "states.age"), nil))
	},
	"state-import": func(ctx context.Context, c *run.Cluster) error {
		return errorOf(states.Import(ctx, c, "states.age", false, "blue"))
	},
	"state-migrate": func(ctx context.Context, c *run.Cluster) error {
		return errorOf(states.Migrate(ctx, c, "s3://another?endpoint=https://s3.example.com", "blue"))
	},
}

func errorOf[T any](_ T, err error) error { return err }

// TestTwoRepositoriesWithAClusterOfOneNameLeaveEachOtherAlone calls every verb in the second of them.
func TestTwoRepositoriesWithAClusterOfOneNameLeaveEachOtherAlone(t *testing.T) {
	for _, place := range []string{"engine", "bucket"} {
		t.Run(place, func(t *testing.T) {
			s := newShared(t)
			inBucket := place == "bucket"
			engine := t.TempDir()
			alice := s.repository("alice", engine, inBucket)
			s.begun(alice)
			if inBucket {
				engine = t.TempDir() // another one
			}
			bob := s.repository("bob", engine, inBucket)
			story.Fault(t, "two repositories have a cluster blue on one %s", place)
			before := s.bytes(alice.State)
			for name, verb := range verbs {
				err := verb(t.Context(), bob)
				if err == nil {
					t.Errorf("%s is not refused", name)
					continue
				}
				for _, text := range []string{`the states of "blue" in`, "another cluster: ", "https://github.com/alice/k8s.git",
					"this description is ", "https://github.com/bob/k8s.git"} {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%s: %q is not in: %v", name, text, err)
					}
				}
				if after := s.bytes(alice.State); !maps.Equal(after, before) {
					t.Errorf("%s has changed what is alice's: %v", name, after)
					before = after
				}
			}
		})
	}
}

// TestASandboxIsNotResetByAnotherOfItsName: world and states are found by one name.
func TestASandboxIsNotResetByAnotherOfItsName(t *testing.T) {
	const live = layersDir + "/live/sandbox"
	key, err := os.ReadFile(filepath.Join(live, "age.key"))
	if err != nil {
		t.Fatal(err)
	}
	state, world := t.TempDir(), t.TempDir()
	s := newShared(t)
	mine := &run.Cluster{Folder: live, State: state, AgeKey: string(key), Out: t.Output()}
	if err := mine.Load(); err != nil {
		t.Fatal(err)
	}
	s.begun(mine)
	if err := os.WriteFile(filepath.Join(world, "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "sandbox")
	if err := os.CopyFS(folder, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	other := sopstest.NewKey(t)
	sopstest.Write(t, filepath.Join(folder, "secrets.sops.yaml"), other.Recipient().String(),
		map[string]string{secrets.StatePassphrase: "a passphrase of another"})
	theirs := &run.Cluster{Folder: folder, State: state, AgeKey: other.String(), Out: t.Output()}
	if err := forget.Execute(t.Context(), theirs, world, ""); err == nil || !strings.Contains(err.Error(), "another cluster") {
		t.Errorf("got %v", err)
	}
	for _, kept := range []string{filepath.Join(state, "owner.json"), filepath.Join(world, "kept")} {
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	}
	if err := forget.Execute(t.Context(), mine, world, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(world, "kept")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the world is still there: %v", err)
	}
}

// TestAWipeKnowsItsClusterWithoutInfisical: the SOPS file alone says whose the states are, and a lost passphrase
// asks for the owner's id.
func TestAWipeKnowsItsClusterWithoutInfisical(t *testing.T) {
	s := newShared(t)
	alice := s.repository("alice", t.TempDir(), true)
	s.begun(alice)
	if report, err := wipe.Execute(t.Context(), alice, wipe.Options{}); err != nil || report.Done {
		t.Fatalf("%+v, %v", report, err)
	}
	if report, err := wipe.Execute(t.Context(), alice, wipe.Options{Confirm: "blue"}); err != nil || !report.Done {
		t.Fatalf("%+v, %v", report, err)
	}
	// Its passphrase and its PKI are lost.
	lost := s.repository("alice", t.TempDir(), true)
	own := sopstest.NewKey(t)
	sopstest.Write(t, filepath.Join(lost.Folder, "secrets.sops.yaml"), own.Recipient().String(), map[string]string{
		secrets.ProxmoxAPIToken: token, secrets.AWSAccessKeyID: "key", secrets.AWSSecretAccessKey: "secret"})
	lost.AgeKey = own.String()
	_, err := wipe.Execute(t.Context(), lost, wipe.Options{Confirm: "blue"})
	if err == nil {
		t.Fatal("it is not refused")
	}
	_, rest, found := strings.Cut(err.Error(), "nuclear-wipe --owner ")
	if !found {
		t.Fatal(err)
	}
	owner, _, _ := strings.Cut(rest, "\n")
	if _, err := wipe.Execute(t.Context(), lost, wipe.Options{Confirm: "blue", Owner: "0123456789abcdef"}); err == nil {
		t.Error("another id is taken")
	}
	if report, err := wipe.Execute(t.Context(), lost, wipe.Options{Confirm: "blue", Owner: owner}); err != nil || !report.Done {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := s.bucket.HeadObject("tazlab-states", "blue/owner.json"); err == nil {
		t.Error("the record is still there, and keeps the next create out")
	}
}
