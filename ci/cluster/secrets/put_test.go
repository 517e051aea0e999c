package secrets

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/redact"
)

func (w *world) kept(name string) string {
	value, _ := w.infisical.Get("garage", "prod", testPath, name)
	return value
}

func TestSecretExists(t *testing.T) {
	for name, before := range map[string]func(w *world){
		"it is not there": func(*world) {},
		"it was listed":   func(w *world) { w.remote[TalosSecrets] = "old" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, before)
			values := w.resolved()
			want := "cluster:\n  secret: " + canary(t) + "\n"
			if err := values.Put(t.Context(), TalosSecrets, want); err != nil {
				t.Fatal(err)
			}
			if w.kept(TalosSecrets) != want {
				t.Errorf("kept %q", w.kept(TalosSecrets))
			}
			if got, _ := values.Get(TalosSecrets); got != want {
				t.Errorf("the values hold %q", got)
			}
			if w.asked("/"+TalosSecrets) != 1 {
				t.Errorf("asked %v", w.calls)
			}
			if err := values.Put(t.Context(), TalosSecrets, "second"); err != nil || w.kept(TalosSecrets) != "second" {
				t.Errorf("%v, kept %q", err, w.kept(TalosSecrets))
			}
		})
	}
}

func TestASecretThatAppearedOrWentMeanwhileIsKept(t *testing.T) {
	w := newWorld(t, nil)
	values := w.resolved()
	if err := w.infisical.Put("garage", "prod", testPath, TalosSecrets, "somebody else's"); err != nil {
		t.Fatal(err)
	}
	if err := values.Put(t.Context(), TalosSecrets, "mine"); err != nil || w.kept(TalosSecrets) != "mine" {
		t.Errorf("%v, kept %q", err, w.kept(TalosSecrets))
	}

	w = newWorld(t, func(w *world) { w.remote[TalosSecrets] = "old" })
	values = w.resolved()
	w.guard(refusing(1, "/"+TalosSecrets, 404, "NotFound", "Secret with name TALOS_SECRETS not found"))
	if err := values.Put(t.Context(), TalosSecrets, "again"); !strings.Contains(errorText(err), "already exist") {
		t.Errorf("a create was not tried after the update found nothing: %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestOtherErrorsOfAPutAreNotSwallowed(t *testing.T) {
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
			err := values.Put(t.Context(), TalosSecrets, value)
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
	err := values.Put(t.Context(), TalosSecrets, value)
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
	if err := values.Put(t.Context(), TalosSecrets, "value"); !strings.Contains(errorText(err), "waits for an approval") {
		t.Errorf("got %v", err)
	}
}

func TestWhatCannotBeKeptIsRefusedBeforeInfisicalIsAsked(t *testing.T) {
	w := newWorld(t, nil)
	values := w.resolved()
	asked := len(w.calls)
	for name, value := range map[string]string{TalosSecrets: " \n", GitOpsToken: " padded ", StatePassphrase: "belongs to the SOPS file"} {
		if err := values.Put(t.Context(), name, value); err == nil || !strings.HasPrefix(err.Error(), name+" cannot be kept") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(w.calls) != asked {
		t.Errorf("asked %v", w.calls[asked:])
	}
}
