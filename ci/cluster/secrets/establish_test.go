package secrets

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/test/tell"
)

func (w *world) kept(name string) string {
	value, _ := w.infisical.Get("garage", "prod", testPath, name)
	return value
}

func TestASecretIsKeptWhereNoneIsThere(t *testing.T) {
	w := newWorld(t, nil)
	values := w.resolved()
	if values.Kept() {
		t.Error("something was written")
	}
	want := "cluster:\n  secret: " + canary(t) + "\n"
	for try := range 2 { // the second time Infisical is not asked
		if kept, err := values.Establish(t.Context(), TalosSecrets, want); err != nil || kept != want {
			t.Errorf("try %d: %q, %v", try, kept, err)
		}
	}
	if !values.Kept() {
		t.Error("nothing was written")
	}
	if w.kept(TalosSecrets) != want || w.asked("/"+TalosSecrets) != 1 {
		t.Errorf("kept %q, asked %v", w.kept(TalosSecrets), w.calls)
	}
	if got, _ := values.Get(TalosSecrets); got != want {
		t.Errorf("the values hold %q", got)
	}
}

func TestASecretThatIsThereIsNeverReplaced(t *testing.T) {
	for name, before := range map[string]func(w *world){
		"it was listed":                       nil,
		"it appeared since":                   func(*world) {},
		"the answer to its making was a loss": func(w *world) { w.guard(refusing(1, "/"+TalosSecrets, 502, "", "Bad Gateway")) },
	} {
		w := newWorld(t, func(w *world) {
			if before == nil {
				w.remote[TalosSecrets] = "the first one's"
			}
		})
		values := w.resolved()
		if before != nil {
			before(w)
			if err := w.infisical.Put("garage", "prod", testPath, TalosSecrets, "the first one's"); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := values.Establish(t.Context(), TalosSecrets, "the second one's")
		if err != nil || kept != "the first one's" || w.kept(TalosSecrets) != "the first one's" {
			t.Errorf("%s: got %q, kept is %q, %v", name, kept, w.kept(TalosSecrets), err)
		}
		if values.Kept() {
			t.Errorf("%s: what others wrote is taken for written", name)
		}
		if got, _ := values.Get(TalosSecrets); got != "the first one's" {
			t.Errorf("%s: the values hold %q", name, got)
		}
	}
}

// Two first creates at once would else build one cluster with two authorities.
func TestTwoThatMakeASecretAtOnceEndWithTheSame(t *testing.T) {
	w := newWorld(t, nil)
	tell.Fault(t, "four first runs at once, each with a PKI of its own")
	var kept [4]string
	var first [len(kept)]*Values
	for i := range first {
		first[i] = w.resolved() // all have looked before any of them writes
	}
	var all sync.WaitGroup
	for i, values := range first {
		all.Go(func() {
			var err error
			if kept[i], err = values.Establish(t.Context(), TalosSecrets, fmt.Sprint("made by ", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, one := range kept {
		if one != w.kept(TalosSecrets) {
			t.Errorf("they go on with %q, Infisical has %q", kept, w.kept(TalosSecrets))
		}
	}
}

func TestASecretThatIsThereAndNotGivenIsAnError(t *testing.T) {
	w := newWorld(t, nil)
	values := w.resolved()
	w.guard(refusing(1, "/"+TalosSecrets, 400, "BadRequest", "Secret already exist"))
	if _, err := values.Establish(t.Context(), TalosSecrets, "mine"); !strings.Contains(errorText(err), "exists in") || !strings.Contains(errorText(err), "let the identity read it") {
		t.Errorf("got %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestOtherErrorsOfKeepingAreNotSwallowed(t *testing.T) {
	for name, door := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"400 of another kind": refusing(always, "/"+TalosSecrets, 400, "BadRequest", "Secret name is reserved"),
		"403":                 refusing(always, "/"+TalosSecrets, 403, "PermissionDenied", "You are not allowed to create on secrets"),
		"404 of the folder":   refusing(always, "/"+TalosSecrets, 404, "NotFound", "Folder not found"),
		"500":                 refusing(always, "/"+TalosSecrets, 500, "InternalServerError", "Something went wrong"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			values := w.resolved()
			w.guard(door)
			value := canary(t)
			_, err := values.Establish(t.Context(), TalosSecrets, value)
			var refused *InfisicalError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "cannot keep TALOS_SECRETS") || strings.Contains(err.Error(), value) {
				t.Errorf("got %v", err)
			}
			if _, has := values.Get(TalosSecrets); has {
				t.Error("the values hold what Infisical did not keep")
			}
		})
	}
}

func TestAnAnswerThatQuotesTheValueIsHidden(t *testing.T) {
	w := newWorld(t, nil)
	values := w.resolved()
	value := canary(t)
	w.guard(refusing(always, "/"+TalosSecrets, 400, "BadRequest", "The value "+value+" is odd, as is "+w.remote[GitOpsToken]))
	_, err := values.Establish(t.Context(), TalosSecrets, value)
	if err == nil || strings.Contains(err.Error(), value) || !strings.Contains(err.Error(), redact.Mark) {
		t.Errorf("got %v", err)
	}
	w.clean("the error", err.Error())
}

func TestAChangeThatWaitsForApprovalIsNotTakenForDone(t *testing.T) {
	w := newWorld(t, nil)
	values := w.resolved()
	w.guard(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, TalosSecrets) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"approval":{"id":"1"}}`)) //nolint:errcheck
		return true
	})
	if _, err := values.Establish(t.Context(), TalosSecrets, "value"); !strings.Contains(errorText(err), "waits for an approval") {
		t.Errorf("got %v", err)
	}
}

func TestWhatCannotBeKeptIsRefusedBeforeInfisicalIsAsked(t *testing.T) {
	w := newWorld(t, nil)
	values := w.resolved()
	asked := len(w.calls)
	for name, value := range map[string]string{TalosSecrets: " \n", "NEW_SECRET": " padded ", StatePassphrase: "belongs to the SOPS file"} {
		if _, err := values.Establish(t.Context(), name, value); err == nil || !strings.HasPrefix(err.Error(), name+" cannot be kept") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(w.calls) != asked {
		t.Errorf("asked %v", w.calls[asked:])
	}
}
