package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/layers"
)

// encrypted is a state as OpenTofu writes it under state encryption.
func encrypted(serial int, lineage string) []byte {
	return fmt.Appendf(nil, `{"serial":%d,"lineage":%q,"meta":{},"encrypted_data":"%032d","encryption_version":"v0"}`, serial, lineage, serial)
}

// each runs a test on both kinds of stores.
func each(t *testing.T, test func(*testing.T, Store)) {
	t.Run("in a folder", func(t *testing.T) {
		test(t, Store{Cluster: described(t, "{backend: local}"), Folder: t.TempDir()})
	})
	t.Run("in S3", func(t *testing.T) {
		s := inS3(t, nil)
		s.Folder = t.TempDir()
		test(t, s)
	})
}

// write makes a state what a run has left.
func write(t *testing.T, s Store, data []byte) {
	t.Helper()
	_, version, err := s.vault().get(t.Context(), nameOf(layers.Platform))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = s.vault().put(t.Context(), nameOf(layers.Platform), data, version)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s Store) now(t *testing.T) string {
	t.Helper()
	data, _, err := s.vault().get(t.Context(), nameOf(layers.Platform))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheLastTenCopiesAreKeptAndRestored(t *testing.T) {
	each(t, func(t *testing.T, s Store) {
		if err := s.Copy(t.Context(), layers.Platform, noon); err != nil {
			t.Fatalf("without a state: %v", err)
		}
		for serial := range 13 {
			write(t, s, encrypted(serial, "x"))
			for range 2 { // the second one finds nothing new
				if err := s.Copy(t.Context(), layers.Platform, noon.Add(time.Duration(serial)*time.Minute)); err != nil {
					t.Fatal(err)
				}
			}
		}
		copies, err := s.Copies(t.Context(), layers.Platform)
		if err != nil || len(copies) != 10 || copies[0] != "20260102T120300.000Z" || copies[9] != "20260102T121200.000Z" {
			t.Fatalf("copies are %v, %v", copies, err)
		}
		if err := s.Restore(t.Context(), layers.Platform, copies[4], noon.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got := s.now(t); got != string(encrypted(7, "x")) {
			t.Errorf("restored is %s", got)
		}
		write(t, s, encrypted(20, "x"))
		if err := s.Restore(t.Context(), layers.Platform, copies[4], noon.Add(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if copies, err = s.Copies(t.Context(), layers.Platform); err != nil || !slices.Contains(copies, "20260102T140000.000Z") {
			t.Errorf("what was there is not among the copies %v, %v", copies, err)
		}
		if err := s.Restore(t.Context(), layers.Platform, "20260102", noon); err == nil || !strings.Contains(err.Error(), copies[0]) {
			t.Errorf("a copy that is not there: %v", err)
		}
	})
}

func TestAStateThatCouldNotBeWrittenIsKeptAndPutBack(t *testing.T) {
	for _, test := range []struct {
		name       string
		there      []byte // nil: none
		left, want []byte
		done       bool
	}{
		{name: "the first", left: encrypted(1, "x"), want: encrypted(1, "x"), done: true},
		{name: "the first, which has no lineage yet", left: encrypted(0, ""), want: encrypted(0, ""), done: true},
		{name: "without a lineage, where there is one", there: encrypted(3, "x"), left: encrypted(5, ""), want: encrypted(3, "x")},
		{name: "a later one", there: encrypted(3, "x"), left: encrypted(5, "x"), want: encrypted(5, "x"), done: true},
		{name: "another machine has gone on", there: encrypted(6, "x"), left: encrypted(5, "x"), want: encrypted(6, "x")},
		{name: "cut off itself", there: encrypted(3, "x"), left: encrypted(5, "x")[:40], want: encrypted(3, "x")},
		{name: "another life of the cluster", there: encrypted(1, "y"), left: encrypted(5, "x"), want: encrypted(1, "y")},
	} {
		t.Run(test.name, func(t *testing.T) {
			each(t, func(t *testing.T, s Store) {
				if test.there != nil {
					write(t, s, test.there)
				}
				unit := filepath.Join(t.TempDir(), ErroredFile)
				if err := Rescue(unit, s.Folder, layers.Platform); err != nil {
					t.Fatalf("nothing was left: %v", err)
				}
				if err := os.WriteFile(unit, test.left, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := Rescue(unit, s.Folder, layers.Platform); err != nil {
					t.Fatal(err)
				}
				for i := range 2 { // nothing is left for the second time
					did, err := s.PutBack(t.Context(), layers.Platform)
					if err != nil || (did == "") != (i == 1) || strings.HasPrefix(did, "an earlier run could not write it") != (test.done && i == 0) {
						t.Errorf("try %d: %q, %v", i+1, did, err)
					}
				}
				if got := s.now(t); got != string(test.want) {
					t.Errorf("the state is %s", got)
				}
			})
		})
	}
}

// A full disk cuts off the state that was to be written, and what is left of it elsewhere as well.
func TestALocalStateThatWasCutOffGivesWayToItsNewestCopy(t *testing.T) {
	for _, test := range []struct {
		name   string
		copies [][]byte
		there  []byte
		left   []byte // nil: nothing
		want   string // "": no state
		told   string
	}{
		{name: "empty, with a copy", copies: [][]byte{encrypted(1, "x"), encrypted(2, "x")}, there: []byte{}, want: string(encrypted(2, "x")), told: "the copy of 20260102T120100.000Z is in its place"},
		{name: "cut, and its copy, too", copies: [][]byte{encrypted(1, "x"), encrypted(2, "x")[:40]}, there: encrypted(3, "x")[:40], want: string(encrypted(1, "x")), told: "the copy of 20260102T120000.000Z"},
		{name: "without a copy", there: encrypted(3, "x")[:40], told: "has cut it off"},
		{name: "left elsewhere, and later than its copy", copies: [][]byte{encrypted(2, "x")}, there: []byte{}, left: encrypted(3, "x"), want: string(encrypted(3, "x")), told: "an earlier run could not write it"},
		{name: "left elsewhere, and cut there", copies: [][]byte{encrypted(2, "x")}, there: []byte{}, left: []byte{}, want: string(encrypted(2, "x")), told: "what an earlier run had kept of it cannot be read"},
		{name: "as it should be", copies: [][]byte{encrypted(2, "x")}, there: encrypted(3, "x"), want: string(encrypted(3, "x"))},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := Store{Cluster: described(t, "{backend: local}"), Folder: t.TempDir()}
			for i, data := range test.copies {
				if err := s.vault().put(t.Context(), copyName(layers.Platform, noon.Add(time.Duration(i)*time.Minute).Format(copyTime)), data, ""); err != nil {
					t.Fatal(err)
				}
			}
			write(t, s, test.there)
			if test.left != nil {
				unit := filepath.Join(t.TempDir(), ErroredFile)
				if err := errors.Join(os.WriteFile(unit, test.left, 0o600), Rescue(unit, s.Folder, layers.Platform)); err != nil {
					t.Fatal(err)
				}
			}
			did, err := s.PutBack(t.Context(), layers.Platform)
			if err != nil || !strings.Contains(did, test.told) || (did == "") != (test.told == "") {
				t.Errorf("%q, %v", did, err)
			}
			data, _, err := s.vault().get(t.Context(), nameOf(layers.Platform))
			if test.want == "" && !errors.Is(err, fs.ErrNotExist) || string(data) != test.want {
				t.Errorf("the state is %q, %v", data, err)
			}
			if again, err := s.PutBack(t.Context(), layers.Platform); err != nil || again != "" {
				t.Errorf("once more: %q, %v", again, err)
			}
		})
	}
}

func TestStatesThatAreTakenAwayAreCopiesAndAreNotPutBack(t *testing.T) {
	each(t, func(t *testing.T, s Store) {
		write(t, s, encrypted(3, "a"))
		left := filepath.Join(t.TempDir(), ErroredFile)
		if err := os.WriteFile(left, encrypted(4, "a"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Rescue(left, s.Folder, layers.Platform); err != nil {
			t.Fatal(err)
		}
		for _, want := range [][]string{{layers.Platform}, nil} {
			if emptied, err := s.Empty(t.Context(), noon); err != nil || !slices.Equal(emptied, want) {
				t.Fatalf("took away %v, %v, not %v", emptied, err, want)
			}
		}
		if did, err := s.PutBack(t.Context(), layers.Platform); err != nil || did != "" {
			t.Errorf("put back: %q, %v", did, err)
		}
		if copies, err := s.Copies(t.Context(), layers.Platform); err != nil || len(copies) != 1 {
			t.Fatalf("the copies are %v, %v", copies, err)
		} else if err := s.Restore(t.Context(), layers.Platform, copies[0], noon); err != nil || s.now(t) != string(encrypted(3, "a")) {
			t.Errorf("restored is %s, %v", s.now(t), err)
		}
	})
}

func TestWhatLivesInTheClusterLeavesItsStateWithACopyKept(t *testing.T) {
	for _, s := range []Store{opened(t, local(t), passphrase), opened(t, inS3(t, nil), passphrase)} {
		resources := map[string]any{"canary": map[string]any{"input": "in-the-clear"}, "later": map[string]any{"input": "x"}}
		if err := unit(t, s, layers.Engine, resources).Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		// OpenTofu takes out what is named, and leaves the rest.
		if err := s.takeOut(t.Context(), layers.Engine, []string{"terraform_data.canary"}); err != nil {
			t.Fatal(err)
		}
		s.holds(t, layers.Engine, "terraform_data.later")
		for _, want := range [][]string{{"terraform_data.later"}, nil} {
			if released, err := s.Release(t.Context(), layers.Engine, noon); err != nil || !slices.Equal(released, want) {
				t.Errorf("released %v, %v", released, err)
			}
		}
		s.holds(t, layers.Engine)
		if copies, err := s.Copies(t.Context(), layers.Engine); err != nil || len(copies) != 1 {
			t.Errorf("the copies are %v, %v", copies, err)
		}
	}
}

func TestResourcesAreCountedByType(t *testing.T) {
	got := Types([]string{`kubectl_manifest.secret["a"]`, "helm_release.x", `kubectl_manifest.secret["b.c"]`, "module.m.terraform_data.y"})
	if want := "2 kubectl_manifest, helm_release, terraform_data"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
