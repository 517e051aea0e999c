package daggerengine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/random"

	"tazlab.net/castle/ci/setup/daemon"
)

func TestAnEngineThatWasNeverStartedIsStopped(t *testing.T) {
	e := Engine{Cache: t.TempDir()}
	if status, err := e.Status(t.Context()); err != nil || status.State != Stopped {
		t.Errorf("got %q, %v; want %q", status.State, err, Stopped)
	}
	if ran, err := e.Down(t.Context()); err != nil || ran {
		t.Errorf("got %t, %v; want nothing stopped", ran, err)
	}
}

func TestAProcessWithoutASocketHasCrashed(t *testing.T) {
	e := Engine{Cache: t.TempDir()}
	_, err := e.daemon().Start(t.Context(), daemon.Spec{
		Command: []string{"sleep", "60"}, Deadline: startDeadline, Ready: func(context.Context) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = e.Down(context.Background()) })
	if status, err := e.Status(t.Context()); err != nil || status.State != Crashed {
		t.Errorf("got %q, %v; want %q", status.State, err, Crashed)
	}
}

func TestOneCommandAtATimeStartsTheEngine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(name); err == nil || !strings.Contains(err.Error(), "another command") {
		t.Errorf("got %v, want an error that names the other command", err)
	}
	unlock()
	unlock, err = lock(name)
	if err != nil {
		t.Fatalf("the lock outlived its holder: %v", err)
	}
	unlock()
}

func TestAnImageIsContentThatTheEngineFinds(t *testing.T) {
	image, err := random.Image(100, 2)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	digest, err := writeContent(image, folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{digest, manifest.Config.Digest.String()}
	for _, layer := range manifest.Layers {
		wanted = append(wanted, layer.Digest.String())
	}
	for _, blob := range wanted {
		if _, err := os.Stat(filepath.Join(folder, "blobs", strings.Replace(blob, ":", "/", 1))); err != nil {
			t.Error(err)
		}
	}
	again, err := writeContent(image, folder)
	if err != nil || again != digest {
		t.Errorf("written again: %s, %v; want %s", again, err, digest)
	}
}
