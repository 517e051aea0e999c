package imagepush

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"tazlab.net/castle/ci/publish/inputs"
	"tazlab.net/castle/ci/test/tell"
)

// madeFrom is an image with content of its own that says what it was made from.
func madeFrom(t *testing.T, base string) v1.Image {
	t.Helper()
	made := inputs.Inputs{Commit: "5d6e7f80", Base: base}
	return mutate.Annotations(newImage(t), made.Annotations()).(v1.Image)
}

func TestATagMadeFromTheSameInputsIsTheImage(t *testing.T) {
	for _, compareOnly := range []bool{false, true} {
		w := newWorld(t)
		there, built := madeFrom(t, "nginx"), madeFrom(t, "nginx")
		mustPush(t, w.options(newLayout(t, there), "v1"))
		w.forget()
		o := w.options(newLayout(t, built), "v1")
		o.compareOnly = compareOnly
		result := mustPush(t, o)
		if !result.AlreadyThere || result.Digest != digestOf(t, there) || result.BuildDigest != digestOf(t, built) || result.Bytes != 0 {
			t.Errorf("%+v", result)
		}
		if writes := w.writes(); len(writes) != 0 {
			t.Errorf("requests that write: %v", writes)
		}
		w.mustHave(t, "v1", digestOf(t, there))
	}
}

func TestAnIndexMadeFromTheSameInputsIsTheIndex(t *testing.T) {
	w := newWorld(t)
	index := func() v1.ImageIndex {
		made := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: newImage(t)})
		return mutate.Annotations(made, inputs.Inputs{Commit: "5d6e7f80"}.Annotations()).(v1.ImageIndex)
	}
	there := index()
	mustPush(t, w.options(newLayout(t, there), "v1"))
	if result := mustPush(t, w.options(newLayout(t, index()), "v1")); !result.AlreadyThere || result.Digest != digestOf(t, there) {
		t.Errorf("%+v", result)
	}
}

func TestATagMadeFromOtherInputsIsRefusedAndTheInputIsNamed(t *testing.T) {
	tell.Fault(t, "the same commit on another base image")
	w := newWorld(t)
	there, built := madeFrom(t, "nginx@sha256:aa"), madeFrom(t, "nginx@sha256:bb")
	mustPush(t, w.options(newLayout(t, there), "v1"))
	w.forget()
	_, err := Push(t.Context(), w.options(newLayout(t, built), "v1"))
	var conflict *TagConflictError
	if !errors.As(err, &conflict) || conflict.Raced {
		t.Fatalf("got %v", err)
	}
	tell.Observation(t, 0, "%v", err)
	for _, want := range []string{"the base image was nginx@sha256:aa and is nginx@sha256:bb", digestOf(t, there), digestOf(t, built)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "the commit was") {
		t.Errorf("the commit is the same: %v", err)
	}
	if writes := w.writes(); len(writes) != 0 {
		t.Errorf("requests that write: %v", writes)
	}
	w.mustHave(t, "v1", digestOf(t, there))
}

// Two runners publish one commit at once, and their builds differ: whoever comes second takes the first one's image.
func TestARaceForOneTagWithTheSameInputsHasOneWinnerAndNoLoser(t *testing.T) {
	w := newWorld(t)
	first, second := madeFrom(t, "nginx"), madeFrom(t, "nginx")
	var pushed atomic.Bool
	w.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/v2/team/blog/blobs/uploads") && pushed.CompareAndSwap(false, true) {
			w.setBefore(nil)
			mustPush(t, w.options(newLayout(t, first), "v1"))
		}
		return false
	}
	result := mustPush(t, w.options(newLayout(t, second), "v1"))
	if result.Digest != digestOf(t, first) || result.BuildDigest != digestOf(t, second) {
		t.Errorf("%+v", result)
	}
	w.mustHave(t, "v1", digestOf(t, first))
}
