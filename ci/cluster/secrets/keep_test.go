package secrets

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/redact"
)

func TestKeepWritesOnlyWhatDiffers(t *testing.T) {
	for name, test := range map[string]struct {
		before, want string
		calls        []string
	}{
		"nothing is there": {"", KeptCreated, []string{"POST"}},
		"it is equal":      {"new\n", KeptUnchanged, nil},
		"it is another":    {"old\n", KeptUpdated, []string{"PATCH"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(w *world) {
				if test.before != "" {
					w.remote[AdminKubeconfig] = test.before
				}
			})
			values := w.resolved()
			asked := len(w.calls)
			result, err := values.Keep(t.Context(), AdminKubeconfig, "new\n")
			if err != nil || result != test.want || w.kept(AdminKubeconfig) != "new\n" {
				t.Errorf("%s, %v; kept is %q", result, err, w.kept(AdminKubeconfig))
			}
			var methods []string
			for _, call := range w.calls[asked:] {
				method, _, _ := strings.Cut(call, " ")
				methods = append(methods, method)
			}
			if strings.Join(methods, " ") != strings.Join(test.calls, " ") {
				t.Errorf("asked %v", methods)
			}
			if again, err := values.Keep(t.Context(), AdminKubeconfig, "new\n"); err != nil || again != KeptUnchanged {
				t.Errorf("the second time: %s, %v", again, err)
			}
		})
	}
}

func TestKeepMeetsWhatOthersDidSince(t *testing.T) {
	t.Run("it was made", func(t *testing.T) {
		w := newWorld(t, nil)
		values := w.resolved()
		if err := w.infisical.Put("garage", "prod", testPath, AdminKubeconfig, "somebody's"); err != nil {
			t.Fatal(err)
		}
		if result, err := values.Keep(t.Context(), AdminKubeconfig, "mine"); err != nil || result != KeptUpdated || w.kept(AdminKubeconfig) != "mine" {
			t.Errorf("%s, %v; kept is %q", result, err, w.kept(AdminKubeconfig))
		}
	})
	t.Run("it was removed", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.remote[AdminKubeconfig] = "old" })
		values := w.resolved()
		removed := false
		w.guard(func(response http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPatch || removed {
				return false
			}
			removed = true
			return refusing(1, "/"+AdminKubeconfig, 404, "NotFound", "Secret with name "+AdminKubeconfig+" not found")(response, r)
		})
		// The simulator still has it: making it is refused, and then it is changed.
		if result, err := values.Keep(t.Context(), AdminKubeconfig, "mine"); err != nil || result != KeptUpdated || w.kept(AdminKubeconfig) != "mine" {
			t.Errorf("%s, %v; kept is %q", result, err, w.kept(AdminKubeconfig))
		}
	})
}

func TestOtherAnswersToKeepAreErrors(t *testing.T) {
	for name, test := range map[string]struct {
		before string
		door   func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"it may not be made":    {"", refusing(always, "/"+AdminKubeconfig, 403, "PermissionDenied", "You are not allowed to create on secrets"), "the permission to create secrets in this path"},
		"it may not be changed": {"old", refusing(always, "/"+AdminKubeconfig, 403, "PermissionDenied", "You are not allowed to edit on secrets"), "the permission to edit secrets in this path"},
		"400 of another kind":   {"", refusing(always, "/"+AdminKubeconfig, 400, "BadRequest", "Secret name is reserved"), "Secret name is reserved"},
		"500":                   {"old", refusing(always, "/"+AdminKubeconfig, 500, "InternalServerError", "Something went wrong"), "after 4 tries"},
		"the folder is gone":    {"old", refusing(always, "/"+AdminKubeconfig, 404, "NotFound", "Folder not found"), "Folder not found"},
		"an approval is needed": {"old", func(response http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPatch {
				return false
			}
			response.Header().Set("Content-Type", "application/json")
			json.NewEncoder(response).Encode(map[string]any{"approval": map[string]string{"id": "1"}}) //nolint:errcheck
			return true
		}, "waits for an approval"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(w *world) {
				if test.before != "" {
					w.remote[AdminKubeconfig] = test.before
				}
			})
			values := w.resolved()
			w.guard(test.door)
			value := canary(t)
			_, err := values.Keep(t.Context(), AdminKubeconfig, value)
			var refused *InfisicalError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "cannot keep ADMIN_KUBECONFIG") || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), value) {
				t.Errorf("got %v", err)
			}
			if got, _ := values.Get(AdminKubeconfig); got != test.before || w.kept(AdminKubeconfig) != test.before {
				t.Errorf("the values hold %q, Infisical %q", got, w.kept(AdminKubeconfig))
			}
		})
	}
}

// A cluster is not made with what comes of it: the inventory, which stands in a state, is the same before and after.
func TestTheInventoryLeavesOutWhatComesOfACluster(t *testing.T) {
	before := newWorld(t, nil).resolved().Inventory()
	after := newWorld(t, func(w *world) { w.remote[AdminKubeconfig], w.remote[AdminTalosconfig] = "a", "b" }).resolved().Inventory()
	if len(before) == 0 || len(before) != len(after) {
		t.Errorf("before %v, after %v", before, after)
	}
}

// The addresses in a kubeconfig are in every log and every error; its key is not.
func TestOfAKubeconfigTheKeyIsHiddenAndTheAddressShown(t *testing.T) {
	secret := canary(t)
	key := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte(secret + secret)}))
	const server = "https://192.168.77.210:6443"
	learn(map[string]string{AdminKubeconfig: "clusters:\n- cluster:\n    server: " + server + "\nusers:\n- user:\n    client-key-data: " + key + "\n"})
	if said := redact.Text("at " + server + " with " + key); said != "at "+server+" with "+redact.Mark {
		t.Errorf("it is shown as %q", said)
	}
	odd := canary(t)
	learn(map[string]string{AdminTalosconfig: odd})
	if said := redact.Text(odd); said != redact.Mark {
		t.Errorf("what is no config is shown as %q", said)
	}
}
