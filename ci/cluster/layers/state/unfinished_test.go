package state

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/layers"
)

// useless fails the test unless the note says nothing, for a reason.
func (s Store) useless(t *testing.T, why string) {
	t.Helper()
	ids, err := s.Unfinished(t.Context())
	if _, is := errors.AsType[*UselessNote](err); !is || !strings.Contains(err.Error(), why) {
		t.Errorf("the note names %v, %v", ids, err)
	}
	if begun, err := s.Begun(t.Context()); begun != nil || err != nil {
		t.Errorf("begun are %v, %v", begun, err)
	}
}

func (s Store) unfinished(t *testing.T, want ...int) {
	t.Helper()
	if ids, err := s.Unfinished(t.Context()); err != nil || !slices.Equal(ids, want) {
		t.Errorf("the note names %v and not %v: %v", ids, want, err)
	}
}

func (s Store) note(t *testing.T, ids ...int) {
	t.Helper()
	if err := s.NoteUnfinished(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
}

func TestTheNoteOfUnfinishedVMsIsKeptWithTheStates(t *testing.T) {
	each(t, func(t *testing.T, s Store) {
		s.unfinished(t)
		s.note(t, 421, 422)
		other := s // another machine, which has a folder of its own, and the same bucket
		if s.Bucket != nil {
			other.Folder = t.TempDir()
		}
		other.unfinished(t, 421, 422)
		write(t, s, []byte("{")) // OpenTofu writes it at this moment
		if err := other.ForgetUnfinishedVM(t.Context(), 421); err != nil {
			t.Fatal(err)
		}
		write(t, s, encrypted(1, "x"))
		s.unfinished(t, 422)
		if err := other.ForgetUnfinishedVM(t.Context(), 421); err != nil {
			t.Fatal(err)
		}
		if err := other.ForgetUnfinishedVM(t.Context(), 422); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.vault().get(t.Context(), unfinishedFile); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the note stays: %v", err)
		}
		s.note(t, 421)
		for range 2 {
			if err := s.ForgetUnfinished(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.unfinished(t)
	})
}

func TestANoteThatDoesNotFitTheStatesSaysNothing(t *testing.T) {
	each(t, func(t *testing.T, s Store) {
		s.note(t, 421) // the first create
		write(t, s, encrypted(1, "x"))
		s.unfinished(t, 421)
		write(t, s, encrypted(7, "x"))
		s.note(t, 421)
		write(t, s, encrypted(9, "x")) // what was made before the kill
		s.unfinished(t, 421)
		write(t, s, []byte("{"))
		if ids, err := s.Begun(t.Context()); err != nil || !slices.Equal(ids, []int{421}) {
			t.Errorf("beside a state that is cut off begun are %v, %v", ids, err)
		}
		if _, err := s.Unfinished(t.Context()); err == nil {
			t.Error("beside a state that is cut off VMs would be removed")
		}
		write(t, s, encrypted(6, "x"))
		s.useless(t, "was written beside serial 7 of the state of layer platform, which has serial 6")
		write(t, s, encrypted(9, "y"))
		s.useless(t, "it names [421], and the state of layer platform that it was written beside is gone")
		if err := s.vault().delete(t.Context(), nameOf(layers.Platform), ""); err != nil {
			t.Fatal(err)
		}
		s.useless(t, "is gone")
		name, err := s.SetUnfinishedAside(t.Context())
		if err != nil || name != "unfinished-vms.json.aside" {
			t.Fatal(name, err)
		}
		s.unfinished(t)
		if kept, _, err := s.vault().get(t.Context(), name); err != nil || !strings.Contains(string(kept), `"vms":[421]`) {
			t.Errorf("kept is %s, %v", kept, err)
		}
	})
}

// A disk that was full, or a power cut, cut the note off, or it is of an earlier castle, which did not write what it
// fits.
func TestABrokenNoteAndAnOldOneAreSetAside(t *testing.T) {
	each(t, func(t *testing.T, s Store) {
		for _, text := range []string{"", "[421, 4", "[421]"} {
			if err := s.overwrite(t.Context(), unfinishedFile, []byte(text)); err != nil {
				t.Fatal(err)
			}
			s.useless(t, "does not say which an earlier create had begun")
			if _, err := s.SetUnfinishedAside(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.unfinished(t)
			if kept, _, err := s.vault().get(t.Context(), asideFile); err != nil || string(kept) != text {
				t.Errorf("%q: kept is %q, %v", text, kept, err)
			}
		}
	})
}

// An earlier castle kept the note on the machine, also where the states are in S3.
func TestANoteOfThisMachineAloneSaysNothingOfStatesInS3(t *testing.T) {
	s := inS3(t, nil)
	s.Folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(s.Folder, unfinishedFile), []byte("[421]"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.useless(t, "it is in this engine's volume, and the states are not")
	if _, err := s.SetUnfinishedAside(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.unfinished(t)
	if kept, err := os.ReadFile(filepath.Join(s.Folder, asideFile)); err != nil || string(kept) != "[421]" {
		t.Errorf("kept is %s, %v", kept, err)
	}
}
