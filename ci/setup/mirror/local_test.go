package mirror

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/setup/images"
)

func TestStandInsTakeThePlaceOfTheImagesThatTheyWereMadeFor(t *testing.T) {
	w, cache, list := newWorkshop(t), t.TempDir(), theList()
	list[0].Digest = "sha256:" + strings.Repeat("0", 64) // upstream's
	built := w.build(cache, list, "golang", "hugo", "nginx")
	local, err := Local(t.Context(), cache, list)
	if err != nil {
		t.Fatal(err)
	}
	want := images.Local{}
	for _, one := range built {
		want[one.Image.Key] = images.LocalImage{For: one.Image.Pinned(), Digest: one.Digest}
	}
	if !maps.Equal(local, want) {
		t.Errorf("got %v, want %v", local, want)
	}
	if !strings.HasSuffix(local["golang"].For, "@"+list[0].Digest) {
		t.Errorf("it is not said which digest the stand-in is for: %s", local["golang"].For)
	}

	// Of another tag, the mirror holds nothing.
	list[2].Tag += "1"
	if local, err = Local(t.Context(), cache, list); err != nil || slices.Contains(slices.Collect(maps.Keys(local)), list[2].Key) {
		t.Errorf("got %v, %v", local, err)
	}
}

func TestAnEmptyCacheHasNothingToOffer(t *testing.T) {
	if local, err := Local(t.Context(), t.TempDir(), theList()); err != nil || len(local) > 0 {
		t.Errorf("got %v, %v", local, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Local(ctx, t.TempDir(), theList()); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// A copy of all platforms has upstream's digest, one of some has its own.
func TestOnlyACopyWithAnotherDigestTakesAnImagesPlace(t *testing.T) {
	up, to := newHub(t, registry.Options{}), newHub(t, registry.Options{})
	both := []string{"linux/amd64", "linux/arm64"}
	list := images.List{
		up.publish(t, "a/whole", "1.0.0", index(t, both...)),
		up.publish(t, "a/part", "1.0.0", index(t, append(both, "linux/s390x")...)),
		up.publish(t, "a/missing", "1.0.0", index(t, both...)),
	}
	synced(t, SyncOptions{List: list[:1], To: to.host})
	synced(t, SyncOptions{List: list[1:2], To: to.host, Platforms: both})
	findings, err := Verify(t.Context(), VerifyOptions{List: list, Registry: to.host})
	if err == nil {
		t.Fatal("nothing is missing")
	}
	if said := findings[1].String(); !strings.HasSuffix(said, ", some platforms of "+list[1].Digest) {
		t.Errorf("it is not said that the copy is found under its own digest alone: %s", said)
	}
	local := LocalOf(findings)
	if len(local) != 1 || local["a-part"].For != list[1].Pinned() || local["a-part"].Digest == list[1].Digest || local["a-part"].Digest == "" {
		t.Errorf("got %v", local)
	}
}
