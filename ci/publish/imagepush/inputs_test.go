package imagepush

import (
	"compress/gzip"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
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

// Two runners publish one commit at once, and the bytes of their builds differ: whoever comes second takes the first
// one's image.
func TestARaceForOneTagWithTheSameInputsHasOneWinnerAndNoLoser(t *testing.T) {
	w := newWorld(t)
	first := site{page: "one", level: gzip.BestSpeed}.image(t)
	second := site{page: "one", level: gzip.BestCompression}.image(t)
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
