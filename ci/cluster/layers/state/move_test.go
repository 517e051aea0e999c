package state

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"filippo.io/age"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/test/sopstest"
)

const passphrase = "0123456789abcdef0123456789abcdef"

// written is a store whose layers have states that the real OpenTofu has written, encrypted.
func written(t *testing.T, s Store, names ...string) Store {
	t.Helper()
	s = opened(t, s, passphrase)
	for _, layer := range names {
		if err := unit(t, s, layer, map[string]any{"canary": map[string]any{"input": "in-the-clear"}}).Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// opened is a store with the states' encryption.
func opened(t *testing.T, s Store, passphrase string) Store {
	t.Helper()
	encryption, err := secrets.StateEncryption("sandbox", passphrase)
	if err != nil {
		t.Fatal(err)
	}
	return withTofu(t, s, encryption)
}

func local(t *testing.T) Store {
	return Store{Cluster: described(t, "{backend: local}"), Folder: t.TempDir()}
}

func (s Store) holds(t *testing.T, layer string, want ...string) {
	t.Helper()
	if got, err := s.Resources(t.Context(), layer); err != nil || !slices.Equal(got, want) {
		t.Errorf("the state of layer %s holds %v, %v, not %v", layer, got, err, want)
	}
}

func TestStatesGoToAnotherMachineInAnArchive(t *testing.T) {
	mine, other := sopstest.NewKey(t), sopstest.NewKey(t)
	source := written(t, local(t), layers.Secrets, layers.Engine)
	var archive bytes.Buffer
	exported, err := source.Export(t.Context(), &archive, []age.Recipient{mine.Recipient(), other.Recipient()}, noon)
	if want := []string{layers.Secrets, layers.Engine}; err != nil || !slices.Equal(exported, want) {
		t.Fatalf("exported %v, %v", exported, err)
	}
	read := func(s Store, data []byte, identity age.Identity) ([]Kept, error) {
		return s.ReadArchive(bytes.NewReader(data), []age.Identity{identity})
	}
	target := opened(t, inS3(t, nil), passphrase)
	list, err := read(target, archive.Bytes(), other)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call finds them there
		done, err := target.Accept(t.Context(), list, false, noon)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(done)
		target.holds(t, layers.Engine, "terraform_data.canary")
		target.holds(t, layers.Secrets, "terraform_data.canary")
	}
	if changed, err := unit(t, target, layers.Engine, map[string]any{"canary": map[string]any{"input": "in-the-clear"}}).Plan(t.Context()); err != nil || changed {
		t.Errorf("the other machine would change something: %t, %v", changed, err)
	}

	// Whatever is wrong with one is found before anything is written.
	empty := opened(t, local(t), passphrase)
	if _, err := read(empty, archive.Bytes(), sopstest.NewKey(t)); err == nil {
		t.Error("anybody's key opens the archive")
	}
	for length := range archive.Len() {
		if length%97 == 0 || archive.Len()-length < 20 {
			if _, err := read(empty, archive.Bytes()[:length], mine); err == nil {
				t.Errorf("an archive of which %d of %d bytes are there is taken", length, archive.Len())
			}
		}
	}
	blue := empty
	renamed := *empty.Cluster
	renamed.Name = "blue"
	blue.Cluster = &renamed
	if _, err := read(blue, archive.Bytes(), mine); err == nil || !strings.Contains(err.Error(), `states of cluster "sandbox", not of "blue"`) {
		t.Errorf("another cluster's archive: %v", err)
	}
	stranger := opened(t, local(t), strings.Repeat("f", 32))
	if _, err := stranger.Accept(t.Context(), list, false, noon); err == nil || !strings.Contains(err.Error(), "passphrase of this cluster does not open") {
		t.Errorf("states of another passphrase: %v", err)
	}
	stranger.holds(t, layers.Secrets)

	// A state that differs is replaced only where that was asked for, and is not lost.
	resources := map[string]any{"canary": map[string]any{"input": "in-the-clear"}, "later": map[string]any{"input": "x"}}
	if err := unit(t, target, layers.Engine, resources).Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := target.Accept(t.Context(), list, false, noon); err == nil || !strings.Contains(err.Error(), "layer engine has a state already: serial 2") {
		t.Errorf("a later state: %v", err)
	}
	target.holds(t, layers.Engine, "terraform_data.canary", "terraform_data.later")
	if done, err := target.Accept(t.Context(), list, true, noon); err != nil || !slices.Equal(done, []string{layers.Engine}) {
		t.Errorf("replaced %v, %v", done, err)
	}
	target.holds(t, layers.Engine, "terraform_data.canary")
	if copies, err := target.Copies(t.Context(), layers.Engine); err != nil || len(copies) != 1 {
		t.Errorf("the copies are %v, %v", copies, err)
	}
}

func TestStatesMoveFromOneStoreToAnotherAndBack(t *testing.T) {
	folder := t.TempDir()
	here := local(t)
	here.Folder = folder
	here = written(t, here, layers.Secrets, layers.Engine)
	there := opened(t, inS3(t, nil), passphrase)
	there.Folder = folder
	if left, err := there.LeftLocal(); err != nil || !slices.Equal(left, []string{layers.Secrets, layers.Engine}) {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	for _, way := range []struct{ from, to Store }{{here, there}, {there, here}} {
		moved, err := way.to.Move(t.Context(), way.from, noon)
		if want := []string{layers.Secrets, layers.Engine}; err != nil || !slices.Equal(moved, want) {
			t.Fatalf("moved %v, %v", moved, err)
		}
		for _, layer := range moved {
			way.to.holds(t, layer, "terraform_data.canary")
			if _, _, err := way.from.vault().get(t.Context(), nameOf(layer)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the state of layer %s is in both stores: %v", layer, err)
			}
			if copies, err := way.from.Copies(t.Context(), layer); err != nil || len(copies) != 1 {
				t.Errorf("layer %s has the copies %v, %v", layer, copies, err)
			}
		}
	}
	if left, err := there.LeftLocal(); err != nil || len(left) != 2 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

// TestAMoveGoesOnAfterItEndedAnywhere: each request to the store is the last one that is answered, in turn.
func TestAMoveGoesOnAfterItEndedAnywhere(t *testing.T) {
	source := written(t, local(t), layers.Engine)
	list, err := source.Kept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Int64
	flaky := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if left.Add(-1) < 0 {
				w.WriteHeader(http.StatusForbidden) // an answer that nobody repeats the request for
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	const always = 1 << 40
	for answered := int64(0); ; answered++ {
		from := opened(t, local(t), passphrase)
		for _, kept := range list {
			if err := from.vault().put(t.Context(), nameOf(kept.Layer), kept.Data, ""); err != nil {
				t.Fatal(err)
			}
		}
		to := opened(t, inS3(t, flaky), passphrase)
		left.Store(answered)
		_, err := to.Move(t.Context(), from, noon)
		if err != nil && left.Load() >= 0 {
			t.Fatal(err)
		}
		left.Store(always)
		if _, again := to.Move(t.Context(), from, noon); again != nil {
			t.Fatalf("after %d requests: %v", answered, again)
		}
		for _, kept := range list {
			if data, _, err := to.vault().get(t.Context(), nameOf(kept.Layer)); err != nil || !bytes.Equal(data, kept.Data) {
				t.Errorf("after %d requests the state of layer %s is another one, %v", answered, kept.Layer, err)
			}
		}
		if err == nil {
			t.Logf("a move makes %d requests", answered)
			return
		}
	}
}
