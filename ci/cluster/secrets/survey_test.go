package secrets

import (
	"encoding/json"
	"strings"
	"testing"
)

func (w *world) survey() map[string]Seen {
	w.t.Helper()
	survey := Look(w.t.Context(), w.cluster, w.in)
	data, err := json.Marshal(survey)
	if err != nil {
		w.t.Fatal(err)
	}
	w.clean("the survey", string(data))
	all := map[string]Seen{}
	for _, seen := range survey.Secrets {
		all[seen.Source+" "+seen.Name] = seen
	}
	for _, reason := range survey.Unread {
		all[reason] = Seen{}
	}
	return all
}

func TestASurveySaysOfEachSecretWhereItIs(t *testing.T) {
	w := newWorld(t, func(w *world) {
		delete(w.remote, GitOpsToken)
		w.remote[FluxAgeKey] = "age1publicnotprivate"
		w.remote[StatePassphrase] = "another one that is long"
		w.remote["EXTRA"] = "an application's"
	})
	seen := w.survey()
	for name, want := range map[string]string{
		"SOPS STATE_PASSPHRASE": StatePresent, "Infisical GITOPS_TOKEN": StateMissing, "Infisical SOPS_AGE_KEY": StateUnfit, "Infisical TALOS_SECRETS": StateLater,
		"Infisical ADMIN_KUBECONFIG": StateLater, "Infisical STATE_PASSPHRASE": StateHidden, "Infisical EXTRA": StatePresent, "Infisical GITOPS_USERNAME": StatePresent,
	} {
		if seen[name].State != want {
			t.Errorf("%s is %+v, want %s", name, seen[name], want)
		}
	}
	if at := seen["Infisical EXTRA"].Where; !strings.HasPrefix(at, "Infisical (") {
		t.Errorf("EXTRA is at %s", at)
	}
	if problem := seen["Infisical GITOPS_TOKEN"].Problem; !strings.HasPrefix(problem, "GITOPS_TOKEN is missing in Infisical (") {
		t.Errorf("the problem is %s", problem)
	}
}

func TestASurveyGoesOnWithoutInfisical(t *testing.T) {
	w := newWorld(t, nil)
	w.guard(refusing(always, "/secrets/raw", 403, "PermissionDenied", "You are not allowed to read on secrets"))
	seen := w.survey()
	if seen["SOPS STATE_PASSPHRASE"].State != StatePresent || seen["Infisical GITOPS_TOKEN"].State != StateUnknown {
		t.Errorf("seen is %+v", seen)
	}
	for name := range seen {
		if strings.Contains(name, "403 Forbidden") {
			return
		}
	}
	t.Error("nobody says why Infisical was not read")
}
