//go:build linux

package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"golang.org/x/sys/unix"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/states"
	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/sopstest"
)

// storeAddress is where a world's S3 is, on the loopback interface of its own network namespace.
const storeAddress = "127.0.0.1:9000"

// store is a simulated S3 (gofakes3, which plays conditional writes) with the states of one world.
type store struct {
	away    atomic.Bool // every connection ends without an answer
	backend gofakes3.Backend
}

// keepStatesInS3 describes the cluster with its states in S3, before anything is created. serve makes that store answer.
func (w *world) keepStatesInS3() {
	w.t.Helper()
	file := filepath.Join(w.live, config.File)
	data, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	text := strings.Replace(string(data), "backend: local", "backend: s3\n  s3: {bucket: states, endpoint: 'http://"+storeAddress+"'}", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	if w.cluster, err = config.Load(w.live); err != nil {
		w.t.Fatal(err)
	}
	values := w.sopsValues()
	values["AWS_ACCESS_KEY_ID"], values["AWS_SECRET_ACCESS_KEY"] = "AKIASCENARIO00000001", "scenario-secret-key-0123456789abcdef"
	w.writeSOPS(w.cluster.Secrets.SOPS[0], values)
}

// writeSOPS writes a SOPS file of the cluster, to be opened with its age key.
func (w *world) writeSOPS(name string, values map[string]string) {
	w.t.Helper()
	key, err := os.ReadFile(filepath.Join(w.live, "age.key"))
	if err != nil {
		w.t.Fatal(err)
	}
	identities, err := age.ParseIdentities(strings.NewReader(string(key)))
	if err != nil {
		w.t.Fatal(err)
	}
	sopstest.Write(w.t, filepath.Join(w.live, name), identities[0].(*age.X25519Identity).Recipient().String(), values)
}

// serveS3 starts the store in the world's network, which must be on and is not switched off after that.
func (w *world) serveS3() *store {
	w.t.Helper()
	s := &store{backend: s3mem.New()}
	if err := s.backend.CreateBucket("states"); err != nil {
		w.t.Fatal(err)
	}
	listener, err := w.listen(storeAddress)
	if err != nil {
		w.t.Fatal(err)
	}
	next := gofakes3.New(s.backend).Server()
	server := &http.Server{Handler: http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if s.away.Load() {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(out, r)
	})}
	go func() { _ = server.Serve(listener) }()
	w.t.Cleanup(func() { _ = server.Close() })
	return s
}

// locks are the objects that lock the cluster or a layer.
func (s *store) locks(w *world) (names []string) {
	w.t.Helper()
	list, err := s.backend.ListBucket("states", nil, gofakes3.ListBucketPage{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, object := range list.Contents {
		if strings.HasSuffix(object.Key, ".tflock") || strings.HasSuffix(object.Key, "/castle.lock") {
			names = append(names, object.Key)
		}
	}
	return names
}

// listen listens within the world's network.
func (w *world) listen(address string) (listener net.Listener, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread goes with the goroutine
		var namespace *os.File
		if namespace, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", w.process.Process.Pid)); err != nil {
			return
		}
		defer namespace.Close()
		if err = unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err == nil {
			listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
		}
	}()
	<-done
	return listener, err
}

// TestAKilledRunLocksNobodyOutWhoMayKnowThatItIsDead: the lock objects of a killed run stay in the store. The next run of the same folder
// frees them; any other one is told, and a person has to say that the holder is dead.
func TestAKilledRunLocksNobodyOutWhoMayKnowThatItIsDead(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "homelab", "0.2", justPlatform()...)
	w.keepStatesInS3()
	w.on()
	w.store = w.serveS3()
	killed := w.start(w.live, nil, "create")
	w.hasVMs(2)
	killed.kill()
	killed.wait(time.Minute)
	all := []string{"sandbox/castle.lock"}
	for _, layer := range layers.All {
		all = append(all, "sandbox/"+layer.Name+"/terraform.tfstate.tflock")
	}
	slices.Sort(all)
	if held := w.store.locks(w); !slices.Equal(held, all) {
		t.Fatalf("locked are %v", held)
	}

	// Another machine has another folder, which says so by its id.
	id := filepath.Join(w.state(), "id")
	ours, err := os.ReadFile(id)
	if err == nil {
		err = os.Remove(id)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := len(w.vms()) // clones go on in Proxmox
	for _, command := range [][]string{{"create"}, {"destroy", "--confirm=sandbox"}} {
		w.castle(command...).failsWith("the cluster is locked by create of process",
			"nothing was changed", "dagger call state-unlock --cluster sandbox --confirm ")
	}
	if got := w.vms(); len(got) != before {
		t.Errorf("Proxmox had %d VMs and has %+v", before, got)
	}
	var found states.States
	if err := json.Unmarshal(w.castle("state-list", "--format=json").succeeds().stdout.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Locks) != 1 || found.Locks[0].Doing != "create" {
		t.Fatalf("the locks are listed as %+v", found.Locks)
	}
	w.castle("state-unlock", "--confirm=x").failsWith(found.Locks[0].ID)
	w.castle("state-unlock", "--confirm="+found.Locks[0].ID).succeeds()
	if held := w.store.locks(w); len(held) > 0 {
		t.Errorf("locked are %v", held)
	}

	// The same machine needs none of that.
	if err := os.WriteFile(id, ours, 0o600); err != nil {
		t.Fatal(err)
	}
	again := w.start(w.live, nil, "create")
	w.until(3*time.Minute, "the cluster is locked", func() (string, bool) {
		held := w.store.locks(w)
		return fmt.Sprint(held), slices.Equal(held, all)
	})
	again.kill()
	again.wait(time.Minute)
	w.castle("create").succeeds()
	if said := w.event(func(e timeline.Event) bool {
		return strings.HasPrefix(e.Name, "lock ") && e.Phase == timeline.PhaseWaiting
	}).Cause; !strings.Contains(said, "the cluster is locked by create of") || !strings.HasSuffix(said, "and that process is dead") {
		t.Errorf("of the freed lock the time line says %q", said)
	}
	w.hasExactlyItsVMs()
	if held := w.store.locks(w); len(held) > 0 {
		t.Errorf("locked are %v", held)
	}

	// Back to a copy: the world is what it was, and so is the plan.
	w.castle("state-list").succeeds()
	if err := json.Unmarshal(w.castle("state-list", "--format=json").succeeds().stdout.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	platform := found.Layers[1]
	if platform.Name != "platform" || len(platform.Resources) != len(w.cluster.Nodes) || len(platform.Copies) != 1 {
		t.Fatalf("the layer platform is listed as %+v", platform)
	}
	w.castle("state-restore", "--layer=platform", "--copy-time="+platform.Copies[0], "--confirm=blue").failsWith("--confirm sandbox")
	w.castle("state-restore", "--layer=platform", "--copy-time="+platform.Copies[0], "--confirm=sandbox").succeeds()
	// An earlier castle wrote no owner beside the states. They are taken over as they are, since the passphrase opens them.
	owner := filepath.Join(w.state(), "owner.json")
	if _, err := w.store.backend.DeleteObject("states", "sandbox/owner.json"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(owner); err != nil {
		t.Fatal(err)
	}
	w.castle("create").succeeds()
	if _, err := os.Stat(owner); err != nil {
		t.Error(err)
	}
	if _, err := w.store.backend.HeadObject("states", "sandbox/owner.json"); err != nil {
		t.Error(err)
	}
	if log := w.toolLog("platform"); !strings.Contains(log, "No changes.") {
		t.Errorf("the machines were changed:\n%s", log)
	}

	// Away and back, in an archive.
	archive := filepath.Join(w.folder, "states.age")
	w.castle("state-export", "--out="+archive).succeeds()
	if data, err := os.ReadFile(archive); err != nil || !strings.HasPrefix(string(data), "age-encryption.org/v1\n") {
		t.Errorf("the archive: %v", err)
	}
	w.castle("state-import", "--archive="+archive, "--confirm=blue").failsWith("--confirm sandbox")
	if said := w.castle("state-import", "--archive="+archive, "--confirm=sandbox").succeeds().stdout.String(); said != "the states are there already\n" {
		t.Errorf("an import of what is there says %q", said)
	}
	if shown := w.castle("state-show", "--layer=platform").succeeds().stdout.String(); !strings.Contains(shown, `proxmox_virtual_environment_vm.node["sandbox-cp-1"]`) {
		t.Errorf("the state of layer platform is shown as\n%s", shown)
	}

	// To another store, which here is the volume.
	bucket := "s3://states?endpoint=http://" + storeAddress
	w.castle("state-migrate", "--from="+bucket, "--confirm=sandbox").failsWith("are in " + bucket + " by its description already")
	described := filepath.Join(w.live, config.File)
	data, err := os.ReadFile(described)
	if err != nil {
		t.Fatal(err)
	}
	inVolume := regexp.MustCompile(`backend: s3\n.*`).ReplaceAll(data, []byte("backend: local"))
	if err := os.WriteFile(described, inVolume, 0o644); err != nil {
		t.Fatal(err)
	}
	if said := w.castle("state-migrate", "--from="+bucket, "--confirm=sandbox").succeeds().stdout.String(); said != "moved the states of secrets, platform\n" {
		t.Errorf("a move says %q", said)
	}
	w.castle("create").succeeds()
	if log := w.toolLog("platform"); !strings.Contains(log, "No changes.") {
		t.Errorf("the machines were changed:\n%s", log)
	}
	if err := os.WriteFile(described, data, 0o644); err != nil {
		t.Fatal(err)
	}
	w.castle("create").failsWith("state-migrate --cluster sandbox --from local --confirm sandbox")
}
