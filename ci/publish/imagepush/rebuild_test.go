package imagepush

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

func TestARebuildTakesTheNextTagThatTheRegistryDoesNotHave(t *testing.T) {
	w := newWorld(t)
	again := func(layout string) Result {
		t.Helper()
		o := w.options(layout, "v1")
		o.Rebuild = true
		o.Known = func(context.Context, string, string) (bool, error) { return true, nil }
		return mustPush(t, o)
	}
	first := madeFrom(t, "nginx@sha256:aa")
	if result := again(newLayout(t, first)); result.Tag != "v1" || result.AlreadyThere || result.Rebuild.Number != 1 {
		t.Errorf("a commit without an image: %+v", result)
	}
	for _, step := range []struct{ base, tag, was string }{
		{"nginx@sha256:bb", "v1-r2", "v1"},
		{"nginx@sha256:cc", "v1-r3", "v1-r2"},
		{"nginx@sha256:aa", "v1-r4", "v1-r3"}, // what an older tag is does not count
	} {
		image := madeFrom(t, step.base)
		result := again(newLayout(t, image))
		if result.Tag != step.tag || result.Reference != w.host()+"/team/blog:"+step.tag || result.AlreadyThere || result.Digest != digestOf(t, image) ||
			result.Rebuild.Was != step.was || len(result.Rebuild.Differences) != 1 || !strings.HasSuffix(result.Rebuild.Differences[0], "is "+step.base) {
			t.Errorf("%s: %+v", step.tag, result)
		}
		w.mustHave(t, step.tag, digestOf(t, image))

		// The same once more, and another build of the same inputs.
		for _, built := range []string{newLayout(t, image), newLayout(t, madeFrom(t, step.base))} {
			w.forget()
			result = again(built)
			if result.Tag != step.tag || !result.AlreadyThere || result.Digest != digestOf(t, image) || len(result.Rebuild.Differences) != 0 || len(w.writes()) != 0 {
				t.Errorf("%s again: %+v, writes %v", step.tag, result, w.writes())
			}
		}
	}
	w.mustHave(t, "v1", digestOf(t, first))
}

func TestOnlyARebuildAsksForOtherTags(t *testing.T) {
	w := newWorld(t)
	layout := newLayout(t, madeFrom(t, "nginx"))
	mustPush(t, w.options(layout, "v1"))
	mustPush(t, w.options(layout, "v1"))
	if i := slices.IndexFunc(w.requests, func(request string) bool { return strings.Contains(request, "-r2") }); i >= 0 {
		t.Errorf("asked %s", w.requests[i])
	}
}

func TestARebuildThatIsOnlyComparedSendsNothing(t *testing.T) {
	w := newWorld(t)
	mustPush(t, w.options(newLayout(t, madeFrom(t, "nginx@sha256:aa")), "v1"))
	w.forget()
	o := w.options(newLayout(t, madeFrom(t, "nginx@sha256:bb")), "v1")
	o.Rebuild = true
	result, err := Compare(t.Context(), o)
	if err != nil || result.Tag != "v1-r2" || result.AlreadyThere || len(w.writes()) != 0 {
		t.Errorf("%+v, %v, writes %v", result, err, w.writes())
	}
}

// Two runners rebuild one commit at once, on different bases: the second takes the number after the first one's.
func TestARaceForOneNumberGivesTwoTags(t *testing.T) {
	w := newWorld(t)
	first, second := madeFrom(t, "nginx@sha256:bb"), madeFrom(t, "nginx@sha256:cc")
	mustPush(t, w.options(newLayout(t, madeFrom(t, "nginx@sha256:aa")), "v1"))
	rebuild := func(layout string) Options {
		o := w.options(layout, "v1")
		o.Rebuild = true
		return o
	}
	var pushed atomic.Bool
	w.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/v2/team/blog/blobs/uploads") && pushed.CompareAndSwap(false, true) {
			w.setBefore(nil)
			mustPush(t, rebuild(newLayout(t, first)))
		}
		return false
	}
	result := mustPush(t, rebuild(newLayout(t, second)))
	if result.Tag != "v1-r3" || result.Rebuild.Was != "v1-r2" || result.Bytes == 0 {
		t.Errorf("%+v", result)
	}
	w.mustHave(t, "v1-r2", digestOf(t, first))
	w.mustHave(t, "v1-r3", digestOf(t, second))
}

func TestARegistryThatRefusesEndsARebuild(t *testing.T) {
	w := newWorld(t)
	o := w.options(newLayout(t, madeFrom(t, "nginx")), "v1")
	o.Rebuild, o.Password = true, "wrong"
	_, err := Push(t.Context(), o)
	var refused *AuthError
	if !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}
