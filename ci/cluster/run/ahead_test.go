package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/filelock"
	"tazlab.net/castle/ci/cluster/layers/state"
)

// newAhead is two machines that OpenTofu is about to make, and the lock of who works on them.
func newAhead(t *testing.T) (a *ahead, unlock func() error) {
	t.Helper()
	a = &ahead{folder: t.TempDir(), states: state.Store{Folder: t.TempDir()}, ids: map[string]int{"cp-1": 1, "cp-2": 2}, made: map[string]chan struct{}{}}
	for node := range a.ids {
		a.made[node] = make(chan struct{})
	}
	unlock, err := filelock.Try(filepath.Join(a.folder, aheadLock))
	if err != nil {
		t.Fatal(err)
	}
	following, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.follow(following)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return a, unlock
}

// is tells whether a machine is made, within a moment.
func (a *ahead) is(t *testing.T, node string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := a.await(ctx, node)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	return err == nil
}

const (
	cp1Made = `{"@level":"info","@message":"proxmox_virtual_environment_vm.node[\"cp-1\"]: Creation complete after 4s [id=421]","type":"apply_complete",` +
		`"hook":{"resource":{"addr":"proxmox_virtual_environment_vm.node[\"cp-1\"]","resource_type":"proxmox_virtual_environment_vm","resource_name":"node","resource_key":"cp-1"},` +
		`"action":"create","id_key":"id","id_value":"421","elapsed_seconds":4}}`
	cp1Begun = `{"type":"apply_start","hook":{"resource":{"resource_type":"proxmox_virtual_environment_vm","resource_name":"node","resource_key":"cp-1"},"action":"create"}}`
	cp1Gone  = `{"type":"apply_complete","hook":{"resource":{"resource_type":"proxmox_virtual_environment_vm","resource_name":"node","resource_key":"cp-1"},"action":"delete"}}`
	another  = `{"type":"apply_complete","hook":{"resource":{"resource_type":"terraform_data","resource_name":"gate","resource_key":"cp-1"},"action":"create"}}`
)

func TestAMachineIsMadeWhenOpenTofuSaysSoAndAllAreWhenItHasEnded(t *testing.T) {
	a, unlock := newAhead(t)
	account, err := os.Create(filepath.Join(a.folder, accountFile))
	if err != nil {
		t.Fatal(err)
	}
	defer account.Close()
	write := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			if _, err := account.WriteString(line + "\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	noted := func(want ...int) {
		t.Helper()
		if ids, err := a.states.Unfinished(t.Context()); err != nil || !slices.Equal(ids, want) {
			t.Errorf("the note of unfinished machines names %v, not %v: %v", ids, want, err)
		}
	}
	if err := a.states.NoteUnfinished(t.Context(), []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	write(cp1Begun, cp1Gone, another, "no JSON")
	if a.is(t, "cp-1") {
		t.Error("a machine passes for made before it is")
	}
	noted(1, 2)
	write(cp1Made, cp1Made)
	if !a.is(t, "cp-1") {
		t.Error("a machine that is made does not pass for it")
	}
	noted(2) // before it is configured
	if a.is(t, "cp-2") {
		t.Error("another machine passes for made")
	}
	if err := errors.Join(a.tell(nil), unlock()); err != nil {
		t.Fatal(err)
	}
	if done, err := broughtUp(t.Context(), a.folder); !done || err != nil {
		t.Errorf("the hook takes it for done: %t, %v", done, err)
	}
	if !a.is(t, "cp-2") {
		t.Error("when the hook runs, all machines are made")
	}
}

func TestTheHookWaitsForWhatTheRunDoesAndGoesOnWhereThatEndedWithoutAWord(t *testing.T) {
	if done, err := broughtUp(t.Context(), ""); done || err != nil {
		t.Errorf("without a run that does it: %t, %v", done, err)
	}
	for name, c := range map[string]struct {
		end  func(*ahead) error
		done bool
		why  string
	}{
		"all is up":               {end: func(a *ahead) error { return a.tell(nil) }, done: true},
		"it failed":               {end: func(a *ahead) error { return a.tell(errors.New("cp-1 is a ghost")) }, done: true, why: "cp-1 is a ghost"},
		"it ended without a word": {end: func(*ahead) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			a, unlock := newAhead(t)
			impatient, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := broughtUp(impatient, a.folder); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("while it goes on: %v", err)
			}
			if err := errors.Join(c.end(a), unlock()); err != nil {
				t.Fatal(err)
			}
			done, err := broughtUp(t.Context(), a.folder)
			why := ""
			if err != nil {
				why = err.Error()
			}
			if done != c.done || why != c.why {
				t.Errorf("done: %t, %q", done, why)
			}
		})
	}
}
