package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"tazlab.net/castle/ci/setup"
	"tazlab.net/castle/ci/setup/mirror"
)

// Building what creating a cluster pulls takes most of an hour; publishing must not wait for it.
func TestTheEngineStartsWithWhatPublishingPulls(t *testing.T) {
	stop := errors.New("nothing is built in a test")
	var asked [][]string
	h := host{
		cache: t.TempDir(), images: "../../../images.yaml", mirror: mirrorAlways, groups: []string{"create"},
		build: func(_ context.Context, options mirror.BuildOptions) ([]mirror.Built, error) {
			asked = append(asked, options.Groups)
			return nil, stop
		},
	}
	own, err := h.engine(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.Toolchain(t.Context()); !errors.Is(err, stop) {
		t.Fatalf("the engine's start: %v", err)
	}
	if err := h.addGroups(t.Context(), setup.Plan{Kind: setup.Built}, own, io.Discard); !errors.Is(err, stop) {
		t.Fatalf("the groups: %v", err)
	}
	if want := [][]string{nil, {"create"}}; !slices.EqualFunc(asked, want, slices.Equal) {
		t.Errorf("asked for the groups %q, want %q", asked, want)
	}
}
