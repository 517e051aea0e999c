package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/setup"
	"tazlab.net/castle/ci/setup/gotool"
	"tazlab.net/castle/ci/setup/images"
	"tazlab.net/castle/ci/setup/mirror"
)

// Building what creating a cluster pulls takes most of an hour; publishing must not wait for it.
func TestTheEngineStartsWithWhatPublishingPulls(t *testing.T) {
	list := filepath.Join(t.TempDir(), "images.yaml")
	text, err := os.ReadFile("../../../.dagger/images.yaml")
	if err := errors.Join(err, os.WriteFile(list, text, 0o644)); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("nothing is built in a test")
	var asked [][]string
	h := host{
		cache: t.TempDir(), images: list, mirror: mirrorAlways, groups: []string{"create"}, hugo: []string{"0.148.1"},
		build: func(_ context.Context, options mirror.BuildOptions) ([]mirror.Built, error) {
			asked = append(asked, options.Groups)
			if wanted, err := options.List.In(options.Groups...); err != nil || slices.ContainsFunc(wanted, isOtherHugo) != (options.Groups != nil) {
				t.Errorf("%v, of the groups %q there are %v", err, options.Groups, wanted)
			}
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
	if want := [][]string{nil, {"create", otherHugo}}; !slices.EqualFunc(asked, want, slices.Equal) {
		t.Errorf("asked for the groups %q, want %q", asked, want)
	}
}

func isOtherHugo(image images.Image) bool {
	return image.Reference() == "ghcr.io/gohugoio/hugo:v0.148.1" && image.Key == "hugo@v0.148.1" && image.Digest == ""
}

func TestAVersionOfHugoThatCannotBeBuiltIsRefusedBeforehand(t *testing.T) {
	list, err := images.Load("../../../.dagger/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	own, err := list.Get("hugo")
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"0.1.2": "no sums of hugo v0.1.2", own.Tag: "--hugo " + own.Tag + ": that is the version of images.yaml"} {
		h := host{cache: t.TempDir(), images: "images.yaml", hugo: []string{version}, build: func(context.Context, mirror.BuildOptions) ([]mirror.Built, error) {
			t.Errorf("%s: stand-ins are made", version)
			return nil, nil
		}}
		if _, err := h.buildMirror(t.Context(), list, h.asked(), false, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", version, err, want)
		}
	}
}

func TestWhatIsToBeBuiltIsSaidBeforehand(t *testing.T) {
	list, err := images.Load("../../../.dagger/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tools := gotool.Builder{Cache: t.TempDir()}
	said := func(groups ...string) string {
		var log strings.Builder
		if err := announce(tools, list, groups, &log); err != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	for _, want := range []string{"15 tools", " min on two cores", "\n  hugo ", "\n  kubernetes ", "\n  tofu "} {
		if !strings.Contains(said("create"), want) {
			t.Errorf("no %q in\n%s", want, said("create"))
		}
	}
	if got := said(); got != "" {
		t.Errorf("a single tool is announced, which says the same itself: %s", got)
	}
	for _, name := range gotool.Names() {
		recipe, err := gotool.Load(name)
		if err == nil && name != "etcd" && name != "kubernetes" {
			err = os.MkdirAll(tools.Dir(recipe), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := said("create"); !strings.HasPrefix(got, "2 tools") || strings.Contains(got, "hugo") {
		t.Errorf("with all others built: %s", got)
	}
}
