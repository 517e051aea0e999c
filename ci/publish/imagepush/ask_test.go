package imagepush

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/registry/registrytest"
)

func TestWhoMayPushIsToldWithoutAPush(t *testing.T) {
	w := newWorld(t)
	if err := Ask(t.Context(), w.access(), w.host()+"/team/blog"); err != nil {
		t.Fatal(err)
	}
	writes := w.writes()
	begins := slices.IndexFunc(writes, func(request string) bool { return request == "POST /v2/team/blog/blobs/uploads/" })
	if begins < 0 || len(writes) != 2 || !strings.HasPrefix(writes[1], "DELETE /v2/team/blog/blobs/uploads/") {
		t.Errorf("requests that write: %q", writes)
	}

	w.forget()
	wrong := w.access()
	wrong.Password = "canary-of-another"
	err := Ask(t.Context(), wrong, w.host()+"/team/blog")
	var refused *AuthError
	if !errors.As(err, &refused) || refused.Status != 401 || !strings.Contains(err.Error(), "team/blog") || strings.Contains(err.Error(), wrong.Password) {
		t.Errorf("got %v", err)
	}

	w.forget()
	nobody := w.access()
	nobody.Username, nobody.Password = "", ""
	if err := Ask(t.Context(), nobody, w.host()+"/team/blog"); err != nil {
		t.Errorf("without a password it is enough that the registry answers: %v", err)
	}
	if writes := w.writes(); len(writes) != 0 {
		t.Errorf("requests that write: %q", writes)
	}
}

func TestARegistryThatIsNotThereIsToldAfterItsTries(t *testing.T) {
	w := newWorld(t)
	w.before = func(rw http.ResponseWriter, _ *http.Request) bool {
		http.Error(rw, "under repair", http.StatusServiceUnavailable)
		return true
	}
	for _, password := range []string{"", password} {
		access := w.access()
		access.Password, access.Tries = password, 2
		var away *UnavailableError
		if err := Ask(t.Context(), access, w.host()+"/team/blog"); !errors.As(err, &away) || away.Attempts != 2 {
			t.Errorf("got %v", err)
		}
	}
	var refused *AuthError
	w = newWorld(t, registrytest.Fault{Mood: registrytest.Forbidden, Times: -1})
	if err := Ask(t.Context(), w.access(), w.host()+"/team/blog"); !errors.As(err, &refused) || refused.Status != 403 {
		t.Errorf("got %v", err)
	}
}
