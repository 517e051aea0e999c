package imagepush

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func TestAnImageIsPushedAndConfirmed(t *testing.T) {
	w := newWorld(t)
	image := newImage(t)
	result := mustPush(t, w.options(newLayout(t, image), "blog-abc1234"))
	if result.Digest != digestOf(t, image) || result.AlreadyThere || result.Blobs != 4 || result.Bytes < 600_000 || result.Attempts != 1 {
		t.Errorf("%+v", result)
	}
	if result.Reference != w.host()+"/team/blog:blog-abc1234" || result.Duration <= 0 {
		t.Errorf("%+v", result)
	}
	w.mustHave(t, "blog-abc1234", digestOf(t, image))
}

func TestTheSameImageAgainSendsNothing(t *testing.T) {
	w := newWorld(t)
	image := newImage(t)
	o := w.options(newLayout(t, image), "v1")
	mustPush(t, o)
	w.forget()
	result := mustPush(t, o)
	if !result.AlreadyThere || result.Digest != digestOf(t, image) || result.Blobs != 0 || result.Bytes != 0 {
		t.Errorf("%+v", result)
	}
	if writes := w.writes(); len(writes) != 0 {
		t.Errorf("requests that write: %v", writes)
	}
}

func TestATagWithAnotherDigestIsNeverMoved(t *testing.T) {
	w := newWorld(t)
	old, image := newImage(t), newImage(t)
	mustPush(t, w.options(newLayout(t, old), "v1"))
	w.forget()
	_, err := Push(t.Context(), w.options(newLayout(t, image), "v1"))
	var conflict *TagConflictError
	if !errors.As(err, &conflict) || conflict.Have != digestOf(t, old) || conflict.Want != digestOf(t, image) || conflict.Raced {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{digestOf(t, old), digestOf(t, image), "team/blog:v1", "new commit"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if writes := w.writes(); len(writes) != 0 {
		t.Errorf("requests that write: %v", writes)
	}
	w.mustHave(t, "v1", digestOf(t, old))
}

func TestCompareSendsNothing(t *testing.T) {
	w := newWorld(t)
	image := newImage(t)
	o := w.options(newLayout(t, image), "v1")
	result, err := Compare(t.Context(), o)
	if err != nil || result.AlreadyThere || result.Digest != digestOf(t, image) || len(w.writes()) != 0 {
		t.Errorf("%+v, %v, writes %v", result, err, w.writes())
	}
	mustPush(t, o)
	if result, err = Compare(t.Context(), o); err != nil || !result.AlreadyThere {
		t.Errorf("%+v, %v", result, err)
	}
	_, err = Compare(t.Context(), w.options(newLayout(t, newImage(t)), "v1"))
	var conflict *TagConflictError
	if !errors.As(err, &conflict) {
		t.Errorf("got %v", err)
	}
}

func TestOnlyMissingBlobsAreSent(t *testing.T) {
	w := newWorld(t)
	image := newImage(t)
	mustPush(t, w.options(newLayout(t, image), "v1"))
	layer, err := random.Layer(1000, types.OCILayer)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := mutate.AppendLayers(image, layer)
	if err != nil {
		t.Fatal(err)
	}
	result := mustPush(t, w.options(newLayout(t, changed), "v2"))
	if result.Blobs != 2 || result.Bytes > 20_000 { // the layer and the configuration
		t.Errorf("%+v", result)
	}
}

func TestAnIndexComesAfterItsImagesAndTheTagLast(t *testing.T) {
	w := newWorld(t)
	images := []v1.Image{newImage(t), newImage(t)}
	inner := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: images[0]})
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: inner}, mutate.IndexAddendum{Add: images[1]}, mutate.IndexAddendum{Add: images[1]})
	mustPush(t, w.options(newLayout(t, index), "v1"))
	var puts []string
	for _, request := range w.writes() {
		if strings.HasPrefix(request, "PUT ") {
			puts = append(puts, request[strings.LastIndex(request, "/")+1:])
		}
	}
	// Before the manifests come the blobs, whose uploads end with a PUT too.
	want := []string{digestOf(t, images[0]), digestOf(t, inner), digestOf(t, images[1]), digestOf(t, index), "v1"}
	puts = puts[max(slices.Index(puts, want[0]), 0):]
	if !slices.Equal(puts, want) {
		t.Errorf("manifests were put in the order %v, want %v", puts, want)
	}
	w.mustHave(t, "v1", digestOf(t, index))
}

func TestSomebodyElsesTagIsFoundBeforeItIsOverwritten(t *testing.T) {
	w := newWorld(t)
	image, other := newImage(t), newImage(t)
	otherLayout := newLayout(t, other)
	var heads atomic.Int32
	w.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/manifests/v1") && r.Method == http.MethodHead {
			if heads.Add(1) == 2 { // after the uploads, right before the tag
				w.setBefore(nil)
				mustPush(t, w.options(otherLayout, "v1"))
			}
		}
		return false
	}
	_, err := Push(t.Context(), w.options(newLayout(t, image), "v1"))
	var conflict *TagConflictError
	if !errors.As(err, &conflict) || conflict.Have != digestOf(t, other) || conflict.Raced {
		t.Errorf("got %v", err)
	}
	w.mustHave(t, "v1", digestOf(t, other))
}

func TestSomebodyElsesTagAtTheSameMomentIsFoundByTheConfirmation(t *testing.T) {
	w := newWorld(t)
	image, other := newImage(t), newImage(t)
	mustPush(t, w.options(newLayout(t, other), "theirs"))
	raw, err := other.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	var put atomic.Bool
	w.before = func(rw http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/manifests/v1"):
			put.Store(true)
		case r.Method == http.MethodHead && strings.HasSuffix(r.URL.Path, "/manifests/v1") && put.Load():
			w.setBefore(nil)
			req, err := http.NewRequest(http.MethodPut, w.url+"/v2/team/blog/manifests/v1", strings.NewReader(string(raw)))
			if err != nil {
				t.Error(err)
				return false
			}
			req.SetBasicAuth(username, password)
			req.Header.Set("Content-Type", string(types.DockerManifestSchema2))
			resp, err := http.DefaultClient.Do(req)
			if err != nil || resp.StatusCode != http.StatusCreated {
				t.Errorf("%v %v", resp, err)
				return false
			}
			resp.Body.Close()
		}
		return false
	}
	_, err = Push(t.Context(), w.options(newLayout(t, image), "v1"))
	var conflict *TagConflictError
	if !errors.As(err, &conflict) || !conflict.Raced || conflict.Have != digestOf(t, other) || conflict.Want != digestOf(t, image) {
		t.Errorf("got %v", err)
	}
}

func (w *world) setBefore(before func(http.ResponseWriter, *http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = before
}

func TestATagThatCannotBeToldApartLaterIsRefused(t *testing.T) {
	layout := newLayout(t, newImage(t))
	for _, reference := range []string{
		"tazzo/tazlab.net", "tazzo/tazlab.net:latest", "localhost:5000/blog", "tazzo/tazlab.net@sha256:" + strings.Repeat("0", 64), "", "UPPER:v1", "http://x/y:z",
	} {
		if _, err := Push(t.Context(), Options{Reference: reference, Layout: layout}); err == nil || !strings.Contains(err.Error(), "image reference") {
			t.Errorf("%q: %v", reference, err)
		}
	}
}

func TestNamesAreReadAsDockerReadsThem(t *testing.T) {
	for reference, want := range map[string]string{
		"tazzo/tazlab.net:blog-abc1234":           "https index.docker.io tazzo/tazlab.net blog-abc1234",
		"docker.io/tazzo/tazlab.net:blog-abc1234": "https index.docker.io tazzo/tazlab.net blog-abc1234",
		"nginx:1.30.5":               "https index.docker.io library/nginx 1.30.5",
		"localhost:5000/blog:v1":     "http localhost:5000 blog v1",
		"registry:5000/team/blog:v1": "http registry:5000 team/blog v1",
		"registry:5001/team/blog:v1": "https registry:5001 team/blog v1",
		"ghcr.io/team/blog:v1":       "https ghcr.io team/blog v1",
	} {
		tag, err := Access{PlainHTTP: []string{"registry:5000"}}.parseTag(reference)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := strings.Join([]string{tag.Scheme(), tag.RegistryStr(), tag.RepositoryStr(), tag.TagStr()}, " "); got != want {
			t.Errorf("%s is %s, want %s", reference, got, want)
		}
	}
}

func TestAnImageIsLookedUpByTagAndDigest(t *testing.T) {
	w := newWorld(t)
	image := newImage(t)
	mustPush(t, w.options(newLayout(t, image), "v1"))
	for _, rest := range []string{":v1", "@" + digestOf(t, image)} {
		got, err := Lookup(t.Context(), w.access(), w.host()+"/team/blog"+rest)
		if err != nil || got != digestOf(t, image) {
			t.Errorf("%s: %s, %v", rest, got, err)
		}
	}
	for _, rest := range []string{"/team/blog:v2", "/team/other:v1", "/team/blog@sha256:" + strings.Repeat("0", 64)} {
		_, err := Lookup(t.Context(), w.access(), w.host()+rest)
		var missing *NotFoundError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("%s: %v", rest, err)
		}
	}
}

func TestAPublishedImageIsFetchedByPlatform(t *testing.T) {
	w := newWorld(t)
	amd, arm := newImage(t), newImage(t)
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: amd, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
		mutate.IndexAddendum{Add: arm, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}})
	mustPush(t, w.options(newLayout(t, index), "v1"))
	got, err := Fetch(t.Context(), w.access(), w.host()+"/team/blog:v1", v1.Platform{OS: "linux", Architecture: "arm64"})
	if err != nil {
		t.Fatal(err)
	}
	if digestOf(t, got) != digestOf(t, arm) {
		t.Errorf("fetched %s, want %s", digestOf(t, got), digestOf(t, arm))
	}
	_, err = Fetch(t.Context(), w.access(), w.host()+"/team/blog:v2", v1.Platform{OS: "linux", Architecture: "arm64"})
	var missing *NotFoundError
	if !errors.As(err, &missing) {
		t.Errorf("got %v", err)
	}
	wrong := w.access()
	wrong.Password = "wrong"
	_, err = Fetch(t.Context(), wrong, w.host()+"/team/blog:v1", v1.Platform{OS: "linux", Architecture: "arm64"})
	var refused *AuthError
	if !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}
