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
	"tazlab.net/castle/ci/cluster/layers/state/objects"
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
	return storeOf(t, conditionalDeletes(backend, gofakes3.New(backend).Server()), around)
}

// conditionalDeletes adds what gofakes3 lacks of AWS: If-Match of a removal is compared with the object's ETag,
// 412 where it differs and 404 where there is no object. Source:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html.
func conditionalDeletes(backend gofakes3.Backend, next http.Handler) http.Handler {
	var one sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		if wanted := r.Header.Get("If-Match"); r.Method == http.MethodDelete && wanted != "" {
			bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
			object, err := backend.HeadObject(bucket, key)
			if err != nil {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			if gofakes3.FormatETag(object.Hash) != wanted {
				w.WriteHeader(http.StatusPreconditionFailed)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
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
		err = s.vault().put(t.Context(), nameOfLock(lock), data, "")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func nameOfLock(lock Lock) string {
	if lock.Layer == "" {
		return runLock
	}
	return lock.Layer + "/" + layerLocks
}

// ids are those of the locks that are shown as held.
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
	killed = Lock{ID: "killed", Operation: "create", Who: "process 7 on dagger", Created: noon, Folder: "mine"}
	again  = Lock{ID: "again", Operation: "create", Who: "process 7 on dagger", Created: noon.Add(30 * time.Minute), Former: []string{"killed"}, Folder: "mine"}
	mine   = Lock{ID: "new", Operation: "create", Who: "process 7 on dagger", Created: noon.Add(time.Hour), Folder: "mine"}
	others = Lock{ID: "theirs", Operation: "destroy", Who: "process 7 on dagger", Created: noon, Folder: "theirs"}
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
		{name: "nobody"},
		{name: "a run of this folder that was killed", held: []Lock{killed}, freed: []string{"killed"}},
		{name: "with what it held on the layers", held: []Lock{killed, killed.onLayer(layers.Platform), killed.onLayer(layers.Engine)}, freed: []string{"killed"}},
		{name: "a second run that was killed, before it had taken over what the first held", held: []Lock{again, killed.onLayer(layers.Platform)}, freed: []string{"again"}},
		{name: "somebody else", held: []Lock{others}, locked: "the cluster is locked by destroy of process 7 on dagger since 2026-01-02 12:00:00 UTC (ID theirs)"},
		{name: "somebody else, with the layers", held: []Lock{others, others.onLayer(layers.Platform)}, locked: "--cluster sandbox --confirm theirs"},
		{name: "a person with OpenTofu alone", held: []Lock{of(layers.Platform, "p", noon)}, locked: "--cluster sandbox --confirm p"},
		{name: "such a person, before the run that was killed", held: []Lock{killed, of(layers.Platform, "p", noon.Add(-time.Minute))}, locked: "(ID p)"},
		{name: "such a person, since the run was killed", held: []Lock{killed, of(layers.Platform, "p", noon.Add(time.Minute))}, locked: "(ID p)"},
		{name: "a layer that another folder's dead run held", held: []Lock{killed, others.onLayer(layers.Platform)}, locked: "(ID theirs-platform)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := inS3(t, nil)
			for _, lock := range test.held {
				put(t, s, lock)
			}
			before := all(t, s)
			var freed []string
			err := s.Take(t.Context(), mine, func(lock Lock) error {
				freed = append(freed, lock.ID)
				return nil
			})
			if test.locked != "" {
				if !errors.As(err, new(*Locked)) || !strings.Contains(err.Error(), test.locked) {
					t.Errorf("got %v", err)
				}
				if now := all(t, s); !slices.Equal(now, before) {
					t.Errorf("held were %v and are %v", before, now)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(freed, test.freed) || !slices.Equal(ids(t, s), []string{"new"}) {
				t.Errorf("freed were %v, held are %v", freed, ids(t, s))
			}
			want := []string{"new"}
			for _, layer := range layers.All {
				want = append(want, "new-"+layer.Name)
			}
			if now := all(t, s); !slices.Equal(now, want) {
				t.Errorf("of all locks, %v are held", now)
			}
			if err := s.Free(t.Context(), mine); err != nil || len(all(t, s)) > 0 {
				t.Errorf("at the end: %v, held are %v", err, all(t, s))
			}
		})
	}
}

// all are the IDs of all locks, those on the states included that a run holds beside its own.
func all(t *testing.T, s Store) (list []string) {
	t.Helper()
	held, err := s.held(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, lock := range held {
		list = append(list, lock.ID)
	}
	return list
}

// A chain of runs that are killed one after the other knows the locks of each, and does not grow without end.
func TestKilledRunsAreRememberedForAsLongAsTheirLocksAreThere(t *testing.T) {
	for kill := range 16 {
		var puts atomic.Int64
		allowed := int64(kill)
		s := inSimulatedS3(t, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut && puts.Add(1) > allowed {
					w.WriteHeader(http.StatusForbidden) // from here on the run is dead
					return
				}
				next.ServeHTTP(w, r)
			})
		})
		for _, id := range []string{"first", "second", "third"} {
			puts.Store(0)
			_ = s.Take(t.Context(), Lock{ID: id, Folder: "mine"}, func(Lock) error { return nil })
		}
		allowed = 100
		if err := s.Take(t.Context(), mine, func(Lock) error { return nil }); err != nil {
			t.Fatalf("after runs that died at write %d: %v", kill, err)
		}
		held, err := s.held(t.Context())
		if err != nil || len(held) != 1+len(layers.All) || held[0].ID != mine.ID || len(held[0].Former) > 3 {
			t.Errorf("held are %+v, %v", held, err)
		}
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
	for _, condition := range []string{"If-None-Match", "If-Match"} {
		t.Run(condition, func(t *testing.T) {
			s := inSimulatedS3(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					r.Header.Del(condition)
					next.ServeHTTP(w, r)
				})
			})
			want := "(" + condition + "): it cannot keep a lock"
			if err := s.CheckStore(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("doctor: %v", err)
			}
			if err := s.Take(t.Context(), mine, func(Lock) error { return nil }); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("create: %v", err)
			}
			if keys, err := s.Bucket.List(t.Context(), "sandbox/"); err != nil || len(keys) > 0 {
				t.Errorf("they leave %v, %v", keys, err)
			}
		})
	}
	s := inS3(t, nil)
	if err := s.CheckStore(t.Context()); err != nil {
		t.Error(err)
	}
	if keys, err := s.Bucket.List(t.Context(), "sandbox/"); err != nil || len(keys) > 0 {
		t.Errorf("a good store is left with %v, %v", keys, err)
	}
}

// Somebody unlocked a run by hand and began another one, in the instant in which the first one ends.
func TestALockThatIsAnothersMeanwhileIsNotRemoved(t *testing.T) {
	var s Store
	var swap atomic.Bool
	s = inSimulatedS3(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/"+runLock) && swap.CompareAndSwap(true, false) {
				if err := s.vault().delete(t.Context(), runLock, ""); err != nil {
					t.Error(err)
				}
				put(t, s, others)
			}
			next.ServeHTTP(w, r)
		})
	})
	if err := s.Take(t.Context(), mine, func(Lock) error { return nil }); err != nil {
		t.Fatal(err)
	}
	swap.Store(true)
	if err := s.Free(t.Context(), mine); !errors.Is(err, objects.ErrChanged) || !slices.Equal(ids(t, s), []string{"theirs"}) {
		t.Errorf("%v, held are %v", err, ids(t, s))
	}
}

// Stores that ignore the condition of a removal, or refuse it, get it after the version was compared.
func TestAStoreWithoutConditionalRemovalsComparesBefore(t *testing.T) {
	for name, around := range map[string]func(http.Handler) http.Handler{
		"it ignores the condition": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodDelete {
					r.Header.Del("If-Match")
				}
				next.ServeHTTP(w, r)
			})
		},
		"it refuses the condition": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodDelete && r.Header.Get("If-Match") != "" {
					w.WriteHeader(http.StatusNotImplemented)
					return
				}
				next.ServeHTTP(w, r)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := inSimulatedS3(t, around)
			put(t, s, others)
			if err := s.vault().delete(t.Context(), runLock, `"00000000000000000000000000000000"`); !errors.Is(err, objects.ErrChanged) || len(ids(t, s)) != 1 {
				t.Errorf("another version: %v, held are %v", err, ids(t, s))
			}
			if _, version, err := s.vault().get(t.Context(), runLock); err != nil || s.vault().delete(t.Context(), runLock, version) != nil || len(ids(t, s)) > 0 {
				t.Errorf("this version: %v, held are %v", err, ids(t, s))
			}
		})
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
	put(t, s, others.onLayer(layers.Platform))
	put(t, s, of(layers.Engine, "a person's", noon.Add(time.Minute)))
	if _, err := s.Unlock(t.Context(), "theirs"); err != nil || !slices.Equal(all(t, s), []string{"a person's"}) {
		t.Errorf("got %v, held are %v", err, all(t, s))
	}
	if _, err := s.Unlock(t.Context(), "a person's"); err != nil {
		t.Error(err)
	}
	// Somebody took the cluster after it was unlocked by hand: the end of the first run must not free it.
	put(t, s, others)
	if err := s.Free(t.Context(), mine); err != nil || !slices.Equal(ids(t, s), []string{"theirs"}) {
		t.Errorf("got %v, held are %v", err, ids(t, s))
	}
}

// A person's lock is OpenTofu's own, left by a process that was killed while it held the lock; it is younger than
// a dead run's.
func TestAPersonWithOpenTofuIsKeptOutAndNotTakenForADeadRun(t *testing.T) {
	s := withTofu(t, inS3(t, nil), "")
	folder := unit(t, s, layers.Storage, map[string]any{"slow": map[string]any{
		"provisioner": map[string]any{"local-exec": map[string]any{"command": "touch begun; exec sleep 10"}}}}).WorkingDir()
	command := func(ctx context.Context, args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, s.Tofu, args...)
		c.Dir, c.Env = folder, s.Environment
		return c
	}
	put(t, s, killed)
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
	if err != nil || len(held) != 2 || held[1].Layer != layers.Storage || held[1].Operation != "OperationTypeApply" {
		t.Fatalf("held are %+v, %v", held, err)
	}
	if err := s.Take(t.Context(), mine, func(Lock) error { return nil }); !errors.As(err, new(*Locked)) || !strings.Contains(err.Error(), held[1].ID) {
		t.Fatalf("over a person's lock: %v", err)
	}
	if _, err := s.Unlock(t.Context(), held[1].ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Take(t.Context(), mine, func(Lock) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t.Context(), "plan", "-lock-timeout=1s").CombinedOutput(); err == nil || !strings.Contains(string(out), "new-storage") {
		t.Errorf("beside a run: %v\n%s", err, out)
	}
	if out, err := command(t.Context(), "plan", "-lock=false").CombinedOutput(); err != nil {
		t.Errorf("the run itself: %v\n%s", err, out)
	}
	if err := s.Free(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t.Context(), "plan", "-lock-timeout=1s").CombinedOutput(); err != nil {
		t.Errorf("the next one: %v\n%s", err, out)
	}
}
