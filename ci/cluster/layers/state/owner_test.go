package state

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/test/tell"
)

// identity is that of the sandbox in somebody's repository.
func identity(t *testing.T, s Store, who, key, pki string) Identity {
	t.Helper()
	cluster := *s.Cluster
	cluster.GitOps.URL = "https://git.example.com/" + who + "/k8s.git"
	return IdentityOf(&cluster, "clusters/sandbox", key, pki)
}

// sealed is a state that holds something or nothing, as OpenTofu encrypts it.
func sealed(t *testing.T, key string, resources int) []byte {
	t.Helper()
	var list []any
	for range resources {
		list = append(list, map[string]any{"mode": "managed", "type": "terraform_data", "name": "canary",
			"instances": []any{map[string]any{}}})
	}
	clear, err := json.Marshal(map[string]any{"version": 4, "resources": list})
	if err != nil {
		t.Fatal(err)
	}
	how := derived{Salt: []byte("salt"), Iterations: 1, Hash: "sha256", Length: 32}
	stretched, err := pbkdf2.Key(sha256.New, key, how.Salt, how.Iterations, how.Length)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(stretched)
	if err != nil {
		t.Fatal(err)
	}
	method, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := json.Marshal(how)
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, method.NonceSize())
	rand.Read(nonce)
	data, err := json.Marshal(map[string]any{"serial": 1, "lineage": "of " + key,
		"meta": map[string][]byte{keyProvider: meta}, "encrypted_data": method.Seal(nonce, nonce, clear, nil)})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (s Store) keeps(t *testing.T, layer string, data []byte) {
	t.Helper()
	_, version, err := s.vault().get(t.Context(), nameOf(layer))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := s.vault().put(t.Context(), nameOf(layer), data, version); err != nil {
		t.Fatal(err)
	}
}

func (s Store) owned(t *testing.T, me Identity) {
	t.Helper()
	if err := s.Own(t.Context(), me, noon); err != nil {
		t.Fatal(err)
	}
}

// refuses looks whether a place is refused, and names these.
func (s Store) refuses(t *testing.T, me Identity, names ...string) {
	t.Helper()
	for _, err := range []error{s.Belongs(t.Context(), me, ""), s.Own(t.Context(), me, noon)} {
		if !errors.As(err, new(*NotOurs)) {
			t.Errorf("got %v", err)
			continue
		}
		for _, name := range append(names, "nothing was changed: use another name or bucket") {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%q is not in: %v", name, err)
			}
		}
	}
}

// places of states: a folder, and a bucket beside a folder that is empty.
func inEachPlace(t *testing.T, test func(t *testing.T, s Store)) {
	t.Run("folder", func(t *testing.T) { test(t, local(t)) })
	t.Run("bucket", func(t *testing.T) {
		s := inS3(t, nil)
		s.Folder = t.TempDir()
		test(t, s)
	})
}

func TestTwoRepositoriesWithOneNameAreToldApart(t *testing.T) {
	inEachPlace(t, func(t *testing.T, s Store) {
		tell.Fault(t, "two repositories describe a cluster of one name, and find each other's states")
		alice, bob := identity(t, s, "alice", "key a", "pki a"), identity(t, s, "bob", "key b", "pki b")
		s.owned(t, alice)
		s.owned(t, alice)
		if err := s.Belongs(t.Context(), identity(t, s, "alice", "key a", ""), ""); err != nil {
			t.Errorf("without Infisical: %v", err)
		}
		s.refuses(t, bob, "another cluster: "+alice.ID+" of https://git.example.com/alice/k8s.git",
			"this description is "+bob.ID+" of https://git.example.com/bob/k8s.git")
		if s.Bucket != nil { // another engine
			s.Folder = t.TempDir()
			s.refuses(t, bob, alice.ID, "bucket states")
			if entries, err := os.ReadDir(s.Folder); err != nil || len(entries) > 0 {
				t.Errorf("its own folder has %v, %v", entries, err)
			}
		}
		// What both have are no secrets.
		data, _, err := s.vault().get(t.Context(), ownerFile)
		if err != nil || bytes.Contains(data, []byte("key a")) || bytes.Contains(data, []byte("pki a")) {
			t.Errorf("the record is %s, %v", data, err)
		}
	})
}

// A copy of a repository has its SOPS file, too.
func TestACopyOfARepositoryWithAnotherInfisicalIsAnotherCluster(t *testing.T) {
	inEachPlace(t, func(t *testing.T, s Store) {
		s.owned(t, identity(t, s, "alice", "key", "pki a"))
		s.keeps(t, layers.Platform, sealed(t, "key", 1))
		copied := identity(t, s, "bob", "key", "pki b")
		s.refuses(t, copied, "alice", "bob", "TALOS_SECRETS")
		if err := s.Belongs(t.Context(), copied, copied.ID); err != nil {
			t.Errorf("the typed owner: %v", err)
		}
	})
}

func TestAnOwnerWhoseSecretsWereMadeAnewIsOneWhereNothingIsLeft(t *testing.T) {
	for name, anew := range map[string]struct{ key, pki string }{"the passphrase": {"key 2", "pki"}, "the PKI": {"key", "pki 2"}} {
		t.Run(name, func(t *testing.T) {
			inEachPlace(t, func(t *testing.T, s Store) {
				s.owned(t, identity(t, s, "alice", "key", "pki"))
				s.keeps(t, layers.Platform, sealed(t, "key", 1))
				me := identity(t, s, "alice", anew.key, anew.pki)
				s.refuses(t, me, "put the former")
				if _, err := s.Empty(t.Context(), noon); err != nil {
					t.Fatal(err)
				}
				s.owned(t, me)
				s.keeps(t, layers.Platform, sealed(t, anew.key, 1))
				s.owned(t, me)
				if anew.key == "key" {
					s.keeps(t, layers.Platform, sealed(t, "key", 0)) // destroy leaves states that hold nothing
					s.owned(t, identity(t, s, "alice", "key", "pki 3"))
				}
			})
		})
	}
}

// States of an earlier castle have no record.
func TestStatesWithoutARecordAreTheirsWhoseKeyOpensThem(t *testing.T) {
	inEachPlace(t, func(t *testing.T, s Store) {
		s.keeps(t, layers.Secrets, sealed(t, "key a", 1))
		s.keeps(t, layers.Platform, sealed(t, "key a", 1))
		bob := identity(t, s, "bob", "key b", "pki b")
		s.refuses(t, bob, "this description is "+bob.ID, "nuclear-wipe --owner ")
		if _, _, err := s.vault().get(t.Context(), ownerFile); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a record was written: %v", err)
		}
		s.owned(t, identity(t, s, "alice", "key a", "pki a"))
		s.refuses(t, bob, "alice")
	})
}

func TestAPlaceWhoseOwnerCannotBeToldIsGivenByTheTypedID(t *testing.T) {
	inEachPlace(t, func(t *testing.T, s Store) {
		unknown := identity(t, s, "alice", "", "") // the passphrase is lost
		s.keeps(t, layers.Platform, sealed(t, "key a", 1))
		var refused *NotOurs
		if err := s.Belongs(t.Context(), unknown, ""); !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if err := s.Belongs(t.Context(), unknown, refused.Theirs.ID); err != nil {
			t.Errorf("without a record: %v", err)
		}
		alice := identity(t, s, "alice", "key a", "pki a")
		s.owned(t, alice)
		for typed, right := range map[string]bool{"": false, "x": false, alice.ID: true} {
			if err := s.Belongs(t.Context(), unknown, typed); (err == nil) != right {
				t.Errorf("typed %q: %v", typed, err)
			}
		}
		if err := s.Belongs(t.Context(), identity(t, s, "bob", "key b", "pki b"), alice.ID); !errors.As(err, new(*NotOurs)) {
			t.Errorf("typed by somebody who is known to be another: %v", err)
		}
		if err := s.Disown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Empty(t.Context(), noon); err != nil {
			t.Fatal(err)
		}
		s.owned(t, identity(t, s, "alice", "key 2", "pki 2"))
	})
}

// A first create was interrupted right after the record, when no state was there, or Infisical had no PKI yet.
func TestAnInterruptedFirstCreateIsCompleted(t *testing.T) {
	inEachPlace(t, func(t *testing.T, s Store) {
		s.owned(t, identity(t, s, "alice", "key a", ""))
		s.owned(t, identity(t, s, "alice", "key a", "pki a"))
		s.refuses(t, identity(t, s, "alice", "key b", "pki b"), "alice")
		data, _, err := s.vault().get(t.Context(), ownerFile)
		var owner Owner
		want := identity(t, s, "alice", "", "pki a").PKI
		if err := errors.Join(err, json.Unmarshal(data, &owner)); err != nil || owner.PKI != want || !owner.Made.Equal(noon) {
			t.Errorf("the record is %+v, %v", owner, err)
		}
	})
}

func TestOfTwoFirstCreatesAtOnceOneOwnsTheBucket(t *testing.T) {
	s := inS3(t, nil)
	var wait sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wait.Go(func() {
			key := string(rune('a' + i))
			results[i] = s.Own(t.Context(), identity(t, s, key, key, key), noon)
		})
	}
	wait.Wait()
	owners := 0
	for _, err := range results {
		if err == nil {
			owners++
		} else if !errors.As(err, new(*NotOurs)) {
			t.Error(err)
		}
	}
	if owners != 1 {
		t.Errorf("%d own it: %v", owners, results)
	}
}

func TestARecordThatCannotBeReadIsNobodysPermission(t *testing.T) {
	inEachPlace(t, func(t *testing.T, s Store) {
		if err := s.vault().put(t.Context(), ownerFile, []byte("{"), ""); err != nil {
			t.Fatal(err)
		}
		err := s.Own(t.Context(), identity(t, s, "alice", "key", "pki"), noon)
		if err == nil || !strings.Contains(err.Error(), "nothing was changed") || errors.As(err, new(*Unreachable)) {
			t.Errorf("got %v", err)
		}
	})
	away := inSimulatedS3(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	})
	if err := away.Belongs(t.Context(), identity(t, away, "alice", "key", "pki"), ""); !errors.As(err, new(*Unreachable)) {
		t.Errorf("a store that refuses: %v", err)
	}
}

func TestRecordsOfRunsAreThoseOfTheRepositoryThatMadeThem(t *testing.T) {
	s := local(t)
	alice, bob := identity(t, s, "alice", "key a", ""), identity(t, s, "bob", "key b", "")
	if err := s.RecordsAreOf(t.Context(), bob.Origin); err != nil {
		t.Errorf("without a record: %v", err)
	}
	s.owned(t, alice)
	if err := s.RecordsAreOf(t.Context(), alice.Origin); err != nil {
		t.Error(err)
	}
	err := s.RecordsAreOf(t.Context(), bob.Origin)
	if err == nil || !strings.Contains(err.Error(), "alice") || !strings.Contains(err.Error(), "bob") {
		t.Errorf("got %v", err)
	}
	moved := identity(t, s, "carol", "key a", "") // the same cluster, whose GitOps repository moved
	s.owned(t, moved)
	if err := s.RecordsAreOf(t.Context(), moved.Origin); err != nil {
		t.Error(err)
	}
}

// The format is OpenTofu's, and read here without it.
func TestAStateThatOpenTofuEncryptedIsOpened(t *testing.T) {
	s := written(t, local(t), layers.Engine)
	key, err := secrets.StateKey("sandbox", passphrase)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(s.Folder, layers.Engine, file))
	if err != nil {
		t.Fatal(err)
	}
	clear, err := decrypt(data, key)
	if err != nil {
		t.Fatal(err)
	}
	held, err := parse(string(clear))
	if err != nil || !slices.Equal(held.addresses(), []string{"terraform_data.canary"}) {
		t.Errorf("it holds %+v, %v", held, err)
	}
	for _, other := range []string{"", "another key"} {
		if _, err := decrypt(data, other); err == nil {
			t.Errorf("the key %q opens it", other)
		}
	}
	s.owned(t, IdentityOf(s.Cluster, "", key, ""))
}
