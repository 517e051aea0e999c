package secrets

import (
	"errors"
	"strings"
	"testing"

	"tazlab.net/castle/ci/sandbox/infisical"
	"tazlab.net/castle/ci/test/tell"
)

// mayIn is a role that may do these things with secrets in paths.
func mayIn(glob string, actions ...string) []infisical.Permission {
	return []infisical.Permission{{Subject: "secrets", Actions: actions, SecretPath: glob}}
}

// butNot forbids to read the value of one secret.
func butNot(role []infisical.Permission, name string) []infisical.Permission {
	return append(role, infisical.Permission{Subject: "secrets", Actions: []string{"readValue"}, Inverted: true, SecretName: name})
}

var everything = []string{"describeSecret", "readValue", "create", "edit"}

// lines fails the test unless an error names each problem in a line of its own, and nothing else.
func lines(t *testing.T, err error, want ...string) {
	t.Helper()
	var incomplete *IncompleteError
	if !errors.As(err, &incomplete) || len(incomplete.Problems) != len(want) || strings.Count(err.Error(), "\n") != len(want) {
		t.Errorf("%d lines are wanted:\n%v", len(want), err)
	}
	for _, line := range want {
		if !strings.Contains(err.Error(), "\n  "+line) {
			t.Errorf("%q is not said in:\n%v", line, err)
		}
	}
}

func TestAllThatIsHiddenIsNamedAtOnceWithThePermissionThatIsNeeded(t *testing.T) {
	at := func(w *world) string {
		return "in Infisical (" + w.cluster.Secrets.Infisical.URL + "), project garage, environment prod, path /clusters/blue: "
	}
	atFlux := func(w *world) string { return strings.TrimSuffix(at(w), ": ") + "/flux: " }
	const value, both = `give the machine identity of INFISICAL_CLIENT_ID "Read Value" (readValue) on this secret`,
		`give the machine identity of INFISICAL_CLIENT_ID "Describe Secret" and "Read Value" (describeSecret, readValue) on secrets in this path`
	t.Run("values", func(t *testing.T) {
		tell.Fault(t, "the machine identity may describe secrets and not read them; one is missing")
		w := newWorld(t, func(w *world) {
			w.role = mayIn("/clusters/**", "describeSecret")
			w.remote[TalosSecrets] = canary(t)
			delete(w.remote, GitOpsUsername)
		})
		lines(t, w.fails(), "GITOPS_TOKEN may be seen but not read by the identity "+atFlux(w)+value, "SOPS_AGE_KEY may be seen but not read by the identity "+atFlux(w)+value,
			"TALOS_SECRETS may be seen but not read by the identity "+at(w)+value, "GITOPS_USERNAME is missing "+atFlux(w)+"add it there")
	})
	t.Run("one value", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.role = butNot(mayIn("/clusters/**", everything...), GitOpsToken) })
		lines(t, w.fails(), "GITOPS_TOKEN may be seen but not read by the identity "+atFlux(w)+value)
	})
	t.Run("another path", func(t *testing.T) {
		tell.Fault(t, "the machine identity's role is bound to another path")
		w := newWorld(t, func(w *world) { w.role = mayIn("/elsewhere/**", everything...) })
		err := w.fails()
		lines(t, err, "GITOPS_USERNAME may not be seen by the identity, whether it is there or not, "+atFlux(w)+both,
			"GITOPS_TOKEN may not be seen by the identity", "SOPS_AGE_KEY may not be seen by the identity")
		if strings.Contains(err.Error(), "add it there") {
			t.Errorf("what may be there is to be added: %v", err)
		}
	})
	t.Run("a reference", func(t *testing.T) {
		w := newWorld(t, func(w *world) {
			w.role = butNot(mayIn("/clusters/**", everything...), "SHARED")
			w.folders = map[string]map[string]string{testFluxPath: {"SHARED": canary(t)}}
			w.remote[GitOpsToken] = "${SHARED}"
		})
		lines(t, w.fails(), "GITOPS_TOKEN may not be read by the identity (You do not have permission to read secret 'SHARED'")
	})
	t.Run("all", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.role = mayIn("", "create") })
		if err := w.fails(); !strings.Contains(err.Error(), "cannot read the secrets: 403 Forbidden") || !strings.HasSuffix(err.Error(), "; "+both) {
			t.Errorf("got %v", err)
		}
		if w.asked("GET") != 1 {
			t.Errorf("one refusal says it all, and it asked %v", w.calls)
		}
	})
}

// A path is often shared: what others keep in it and hide is nothing to a cluster.
func TestWhatIsNotNeededMayStayHidden(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.role = butNot(mayIn("/clusters/**", everything...), "EXTRA")
		w.remote["EXTRA"], w.remote[TalosSecrets], w.remote[AdminKubeconfig] = canary(t), "cluster: {}\n", "kept\n"
	})
	values := w.resolved()
	for _, name := range []string{GitOpsUsername, GitOpsToken, FluxAgeKey, TalosSecrets, AdminKubeconfig} {
		if got, _ := values.Get(name); got != w.remote[name] {
			t.Errorf("%s is %q", name, got)
		}
	}
	if _, has := values.Get("EXTRA"); has {
		t.Error("there is a value of what is hidden")
	}
	if result, err := values.Keep(t.Context(), AdminKubeconfig, "kept\n"); err != nil || result != KeptUnchanged {
		t.Errorf("what is kept already: %s, %v", result, err)
	}
}

// A role may name the secrets one by one: what only some clusters have, and is not among them, is not needed.
func TestARoleMayNameWhatAClusterNeedsAlone(t *testing.T) {
	named := func(w *world) {
		w.role = mayIn("/clusters/**", "create", "edit")
		for _, name := range []string{GitOpsUsername, GitOpsToken, FluxAgeKey, TalosSecrets} {
			w.role = append(w.role, infisical.Permission{Subject: "secrets", Actions: []string{"describeSecret", "readValue"}, SecretName: name})
		}
		w.role = append(w.role, infisical.Permission{Subject: "secrets", Actions: []string{"describeSecret"}, SecretName: "EXTRA"})
		w.remote["EXTRA"] = canary(t)
	}
	newWorld(t, named).resolved()
	w := newWorld(t, func(w *world) {
		named(w)
		w.role[4].SecretName = "ANOTHER" // than the PKI, which may be there
	})
	lines(t, w.fails(), "TALOS_SECRETS may not be seen")
}

func TestAPKIThatMayNotBeReadIsNotMadeAnew(t *testing.T) {
	w := newWorld(t, func(w *world) { w.role = butNot(mayIn("/clusters/**", everything...), TalosSecrets) })
	values := w.resolved()
	if err := w.infisical.Put("garage", "prod", testPath, TalosSecrets, "the first one's"); err != nil {
		t.Fatal(err)
	}
	_, err := values.Establish(t.Context(), TalosSecrets, "the second one's")
	if text := errorText(err); !strings.Contains(text, "TALOS_SECRETS exists in Infisical") || !strings.Contains(text, `"Read Value" (readValue)`) {
		t.Errorf("got %v", err)
	}
	if w.kept(TalosSecrets) != "the first one's" {
		t.Errorf("kept is %q", w.kept(TalosSecrets))
	}
	lines(t, w.fails(), "TALOS_SECRETS may be seen but not read")
}

func TestAChangeThatWaitsForApprovalSaysWhoCanHelpAndIsGoneOnWithWhenApproved(t *testing.T) {
	tell.Fault(t, "changes in the cluster's path wait for an approval")
	w := newWorld(t, func(w *world) {
		w.remote[AdminKubeconfig] = "old"
		w.policies = []infisical.Policy{{Environment: "prod", SecretPath: "/clusters/*"}}
	})
	values := w.resolved()
	value := canary(t)
	const why = "the change waits for an approval; have machine identities bypass the change policy of this path, or have the request approved in Infisical, then the same call"
	_, err := values.Establish(t.Context(), TalosSecrets, value)
	if text := errorText(err); !strings.HasPrefix(text, "Infisical (") || !strings.HasSuffix(text, "cannot keep TALOS_SECRETS: "+why) || strings.Contains(text, value) {
		t.Errorf("got %v", err)
	}
	tell.Observation(t, 0, "%v", err)
	if _, has := values.Get(TalosSecrets); has || w.kept(TalosSecrets) != "" {
		t.Error("it is taken for kept")
	}
	if _, err := values.Keep(t.Context(), AdminKubeconfig, "new"); !strings.HasSuffix(errorText(err), why) || w.kept(AdminKubeconfig) != "old" {
		t.Errorf("an update: %v", err)
	}
	if w.infisical.Waiting("garage") != 2 {
		t.Errorf("%d requests wait", w.infisical.Waiting("garage"))
	}
	if err := w.infisical.Approve("garage"); err != nil {
		t.Fatal(err)
	}
	if kept, err := w.resolved().Establish(t.Context(), TalosSecrets, "another one's"); err != nil || kept != value {
		t.Errorf("after the approval: %q, %v", kept, err)
	}
}

func TestASurveyTellsHiddenFromMissing(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.role = butNot(mayIn("/clusters/**", everything...), GitOpsToken)
		w.remote["EXTRA"], w.remote[AdminKubeconfig] = canary(t), canary(t)
		delete(w.remote, GitOpsUsername)
	})
	seen := w.survey()
	for name, want := range map[string]string{"GITOPS_TOKEN": StateUnfit, "GITOPS_USERNAME": StateMissing, "SOPS_AGE_KEY": StatePresent, "TALOS_SECRETS": StateLater, "ADMIN_KUBECONFIG": StatePresent} {
		if got := seen["Infisical "+name]; got.State != want {
			t.Errorf("%s is %+v, want %s", name, got, want)
		}
	}
	if got := seen["Infisical GITOPS_TOKEN"]; !strings.Contains(got.Problem, "may be seen but not read") || !strings.Contains(got.Fix, `"Read Value"`) {
		t.Errorf("the problem is %+v", got)
	}
	if opened := Open(t.Context(), w.cluster, w.in); opened.Withheld != 1 || opened.Infisical != nil {
		t.Errorf("%d are withheld, %v", opened.Withheld, opened.Infisical)
	}
}
