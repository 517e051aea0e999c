package imagepush

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

func attachmentOf(text string) Attachment {
	return Attachment{MediaType: "text/plain", Content: []byte(text), Annotations: map[string]string{"says": text}}
}

// attached is what stands beside an image, in one text.
func attached(t *testing.T, w *world, image string) string {
	t.Helper()
	found, err := Attachments(t.Context(), w.access(), image, ".sig")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, one := range found {
		if one.MediaType != "text/plain" || one.Annotations["says"] != string(one.Content) {
			t.Errorf("%+v", one)
		}
		texts = append(texts, string(one.Content))
	}
	return strings.Join(texts, " ")
}

func TestAttachmentsStandBesideAnImageUnderATagOfItsDigest(t *testing.T) {
	w := newWorld(t)
	pushed := mustPush(t, w.options(newLayout(t, newImage(t)), "v1"))
	image := w.host() + "/team/blog@" + pushed.Digest
	if got := attached(t, w, image); got != "" {
		t.Errorf("before the first there was %q", got)
	}
	for _, text := range []string{"first", "second", "first"} {
		if err := Attach(t.Context(), w.access(), image, ".sig", attachmentOf(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := attached(t, w, image); got != "first second" {
		t.Errorf("%q", got)
	}
	w.forget()
	if err := Attach(t.Context(), w.access(), image, ".sig", attachmentOf("second")); err != nil || len(w.writes()) != 0 {
		t.Errorf("what was there was sent again: %v, %v", w.writes(), err)
	}
	w.mustHave(t, "v1", pushed.Digest)
}

// Theirs comes while ours is being uploaded, and again, after ours, where a registry lets them overwrite it.
func TestWhoAttachAtTheSameTimeTakeNothingFromEachOther(t *testing.T) {
	w := newWorld(t)
	pushed := mustPush(t, w.options(newLayout(t, newImage(t)), "v1"))
	image := w.host() + "/team/blog@" + pushed.Digest
	var uploads atomic.Int32
	w.setBefore(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && uploads.Add(1) == 1 {
			if err := Attach(t.Context(), w.access(), image, ".sig", attachmentOf("theirs")); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	if err := Attach(t.Context(), w.access(), image, ".sig", attachmentOf("ours")); err != nil {
		t.Fatal(err)
	}
	if got := attached(t, w, image); got != "theirs ours" {
		t.Errorf("%q", got)
	}
}

// The other side of it: what was put is looked for, and put again where somebody else has just overwritten it.
func TestWhatOthersOverwroteIsAttachedAgain(t *testing.T) {
	w := newWorld(t)
	pushed := mustPush(t, w.options(newLayout(t, newImage(t)), "v1"))
	image := w.host() + "/team/blog@" + pushed.Digest
	var puts atomic.Int32
	w.setBefore(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, ".sig") || puts.Add(1) != 1 {
			return false
		}
		rw.Header().Set("Docker-Content-Digest", pushed.Digest) // taken, and gone at once
		rw.WriteHeader(http.StatusCreated)
		return true
	})
	if err := Attach(t.Context(), w.access(), image, ".sig", attachmentOf("ours")); err != nil {
		t.Fatal(err)
	}
	if got := attached(t, w, image); got != "ours" || puts.Load() != 2 {
		t.Errorf("%q after %d puts", got, puts.Load())
	}
}

func TestAnImageWithoutADigestHasNoAttachments(t *testing.T) {
	w := newWorld(t)
	if _, err := Attachments(t.Context(), w.access(), w.host()+"/team/blog:v1", ".sig"); err == nil || !strings.Contains(err.Error(), "no digest") {
		t.Errorf("%v", err)
	}
}

func TestARegistryThatRefusesAnAttachmentIsSaidSo(t *testing.T) {
	w := newWorld(t)
	pushed := mustPush(t, w.options(newLayout(t, newImage(t)), "v1"))
	w.setBefore(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, ".sig") {
			rw.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	err := Attach(t.Context(), w.access(), w.host()+"/team/blog@"+pushed.Digest, ".sig", attachmentOf("ours"))
	if err == nil || !strings.Contains(err.Error(), "refused access (403)") {
		t.Errorf("%v", err)
	}
}
