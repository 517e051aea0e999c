package state

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"tazlab.net/castle/ci/cluster/layers"
)

// inS3 is a store of states in a simulated S3, or in versitygw where CASTLE_VERSITYGW names it, as "make test-s3" does. Its requests pass
// through a handler.
func inS3(t *testing.T, around func(http.Handler) http.Handler) Store {
	t.Helper()
	if program := os.Getenv("CASTLE_VERSITYGW"); program != "" {
		return storeOf(t, versitygw(t, program), around)
	}
	return inSimulatedS3(t, around)
}

// inSimulatedS3 is one in gofakes3, which checks no signature: what a handler changes of a request is taken for what was sent.
func inSimulatedS3(t *testing.T, around func(http.Handler) http.Handler) Store {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("states"); err != nil {
		t.Fatal(err)
	}
	return storeOf(t, gofakes3.New(backend).Server(), around)
}

func storeOf(t *testing.T, handler http.Handler, around func(http.Handler) http.Handler) Store {
	t.Helper()
	if around != nil {
		handler = around(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	cluster := described(t, "{backend: s3, s3: {bucket: states, endpoint: '"+server.URL+"'}}")
	return Store{Cluster: cluster, Bucket: Bucket(cluster, "key", "secret")}
}

func put(t *testing.T, s Store, lock Lock) {
	t.Helper()
	data, err := json.Marshal(lock)
	if err == nil {
		name := runLock
		if lock.Layer != "" {
			name = lock.Layer + "/" + layerLocks
		}
		err = s.vault().put(t.Context(), name, data, "")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ids are those of the locks that are held.
func ids(t *testing.T, s Store) (list []string) {
	t.Helper()
	held, err := s.Locks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, lock := range held {
		list = append(list, lock.ID)
	}
	return list
}

var (
	noon   = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	killed = Lock{ID: "killed", Operation: "create", Who: "process 7 on dagger", Created: noon, Held: noon, Folder: "mine"}
	again  = Lock{ID: "again", Operation: "create", Who: "process 7 on dagger", Created: noon.Add(30 * time.Minute), Held: noon, Folder: "mine"}
	mine   = Lock{ID: "new", Operation: "create", Who: "process 7 on dagger", Created: noon.Add(time.Hour), Folder: "mine"}
	others = Lock{ID: "theirs", Operation: "destroy", Who: "process 7 on dagger", Created: noon, Held: noon, Folder: "theirs"}
)

// of is OpenTofu's lock on a layer.
func of(layer, id string, created time.Time) Lock {
	return Lock{ID: id, Layer: layer, Operation: "OperationTypeApply", Who: "root@dagger", Created: created}
}

func TestALockIsTakenOverOnlyFromADeadProcess(t *testing.T) {
	for _, test := range []struct {
		name   string
		held   []Lock
		freed  []string
		locked string // in the error
	}{
		{name: "nobody", held: nil},
		{name: "a run of this folder that was killed", held: []Lock{killed}, freed: []string{"killed"}},
		{name: "with what OpenTofu held", held: []Lock{killed, of(layers.Platform, "p", noon.Add(time.Minute)), of(layers.Engine, "e", noon.Add(time.Minute))},
			freed: []string{"killed", "p", "e"}},
		{name: "a second run that was killed, before it had freed what the first held", held: []Lock{again, of(layers.Platform, "p", noon.Add(time.Minute))},
			freed: []string{"again", "p"}},
		{name: "somebody else", held: []Lock{others}, locked: "the cluster is locked by destroy of process 7 on dagger since 2026-01-02 12:00:00 UTC (ID theirs)"},
		{name: "somebody else, with a layer", held: []Lock{others, of(layers.Platform, "p", noon.Add(time.Minute))}, locked: "the state of layer platform is locked by OperationTypeApply of root@dagger"},
		{name: "a person with OpenTofu alone", held: []Lock{of(layers.Platform, "p", noon)}, locked: "--cluster sandbox --confirm p"},
		{name: "such a person, before the run that was killed", held: []Lock{killed, of(layers.Platform, "p", noon.Add(-time.Minute))}, locked: "(ID p)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := inS3(t, nil)
			var all []string
			for _, lock := range test.held {
				put(t, s, lock)
				all = append(all, lock.ID)
			}
			var freed []string
			err := s.Take(t.Context(), mine, func(lock Lock) error {
				freed = append(freed, lock.ID)
				return nil
			})
			if test.locked != "" {
				if !errors.As(err, new(*Locked)) || !strings.Contains(err.Error(), test.locked) {
					t.Errorf("got %v", err)
				}
				if now := ids(t, s); !slices.Equal(now, all) {
					t.Errorf("held were %v and are %v", all, now)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(freed, test.freed) || !slices.Equal(ids(t, s), []string{"new"}) {
				t.Errorf("freed were %v, held are %v", freed, ids(t, s))
			}
			if now, err := s.Locks(t.Context()); err != nil || len(test.held) > 0 && !now[0].Held.Equal(noon) {
				t.Errorf("the cluster is held since %+v, %v", now, err)
			}
			put(t, s, of(layers.Storage, "left behind", mine.Created.Add(time.Minute)))
			if err := s.Free(t.Context(), mine); err != nil || len(ids(t, s)) > 0 {
				t.Errorf("at the end: %v, held are %v", err, ids(t, s))
			}
		})
	}
}

func TestOfManyThatBeginAtOnceOneGetsTheCluster(t *testing.T) {
	s := inS3(t, nil)
	var got sync.Map
	var all sync.WaitGroup
	for _, folder := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		all.Go(func() {
			err := s.Take(t.Context(), Lock{ID: folder, Created: noon, Folder: folder}, func(Lock) error { return nil })
			if err == nil {
				got.Store(folder, true)
			}
		})
	}
	all.Wait()
	var winners []string
	got.Range(func(folder, _ any) bool {
		winners = append(winners, folder.(string))
		return true
	})
	if len(winners) != 1 || !slices.Equal(ids(t, s), winners) {
		t.Errorf("%v have it, the lock is of %v", winners, ids(t, s))
	}
}

// The client sends a write again whose answer was lost, and the store says then that somebody was first: the client itself.
func TestALockWhoseAnswerWasLostIsOnesOwn(t *testing.T) {
	var lost atomic.Int64
	s := inS3(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPut || lost.Add(1) > 1 {
				next.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(httptest.NewRecorder(), r)
			http.Error(w, "the answer was lost", http.StatusInternalServerError)
		})
	})
	if err := s.Take(t.Context(), mine, func(Lock) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if held := ids(t, s); !slices.Equal(held, []string{mine.ID}) {
		t.Errorf("the lock is of %v", held)
	}
	if err := s.Take(t.Context(), others, func(Lock) error { return nil }); !errors.As(err, new(*Locked)) {
		t.Errorf("somebody else gets it: %v", err)
	}
	if lost.Load() < 2 {
		t.Error("nothing was sent again")
	}
}

func TestAStoreThatOverwritesWhatItShallLeaveAloneIsRefused(t *testing.T) {
	s := inSimulatedS3(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-None-Match")
			next.ServeHTTP(w, r)
		})
	})
	err := s.Take(t.Context(), mine, func(Lock) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "cannot keep a lock") {
		t.Errorf("got %v", err)
	}
	if held := ids(t, s); len(held) > 0 {
		t.Errorf("it leaves %v", held)
	}
}

func TestALockIsRemovedByItsIDAlone(t *testing.T) {
	s := inS3(t, nil)
	put(t, s, others)
	put(t, s, of(layers.Platform, "p", noon))
	if _, err := s.Unlock(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "(ID theirs)") || !strings.Contains(err.Error(), "(ID p)") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Unlock(t.Context(), "p"); err != nil || !slices.Equal(ids(t, s), []string{"theirs"}) {
		t.Errorf("got %v, held are %v", err, ids(t, s))
	}
	if _, err := s.Unlock(t.Context(), "theirs"); err != nil || len(ids(t, s)) > 0 {
		t.Errorf("got %v, held are %v", err, ids(t, s))
	}
	if _, err := s.Unlock(t.Context(), "theirs"); err == nil {
		t.Error("nothing is locked, and it was unlocked")
	}
	put(t, s, others)
	put(t, s, of(layers.Platform, "within", noon.Add(time.Minute)))
	put(t, s, of(layers.Engine, "before", noon.Add(-time.Minute)))
	if _, err := s.Unlock(t.Context(), "theirs"); err != nil || !slices.Equal(ids(t, s), []string{"before"}) {
		t.Errorf("got %v, held are %v", err, ids(t, s))
	}
	if _, err := s.Unlock(t.Context(), "before"); err != nil {
		t.Error(err)
	}
	// Somebody took the cluster after it was unlocked by hand: the end of the first run must not free it.
	put(t, s, others)
	if err := s.Free(t.Context(), mine); err != nil || !slices.Equal(ids(t, s), []string{"theirs"}) {
		t.Errorf("got %v, held are %v", err, ids(t, s))
	}
}

// The object is OpenTofu's own, left by a process that was killed while it held the lock.
func TestALockOfAnOpenTofuThatWasKilledIsFreed(t *testing.T) {
	s := withTofu(t, inS3(t, nil), "")
	folder := unit(t, s, layers.Storage, map[string]any{"slow": map[string]any{
		"provisioner": map[string]any{"local-exec": map[string]any{"command": "touch begun; exec sleep 10"}}}}).WorkingDir()
	command := func(ctx context.Context, args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, s.Tofu, args...)
		c.Dir, c.Env = folder, s.Environment
		return c
	}
	began := time.Now().UTC()
	put(t, s, Lock{ID: "killed", Operation: "create", Who: "process 7 on dagger", Created: began, Held: began, Folder: "mine"})
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	apply := command(ctx, "apply", "-auto-approve")
	apply.WaitDelay = time.Second
	if err := apply.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(folder, "begun")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("OpenTofu did not begin within a minute")
		}
	}
	kill()
	_ = apply.Wait()
	held, err := s.Locks(t.Context())
	if err != nil || len(held) != 2 || held[1].Layer != layers.Storage || held[1].Operation != "OperationTypeApply" || held[1].Created.Before(began) {
		t.Fatalf("held are %+v, %v", held, err)
	}
	freed := 0
	err = s.Take(t.Context(), Lock{ID: "new", Created: time.Now().UTC(), Folder: "mine"}, func(Lock) error { freed++; return nil })
	if err != nil || freed != 2 {
		t.Fatalf("freed %d, %v", freed, err)
	}
	if out, err := command(t.Context(), "plan", "-lock-timeout=1s").CombinedOutput(); err != nil {
		t.Errorf("the next one: %v\n%s", err, out)
	}
}
