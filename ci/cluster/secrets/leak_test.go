package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/base/redact"
)

func TestSecretsDoNotLeakByPrinting(t *testing.T) {
	w := newWorld(t, nil)
	values := w.resolved()
	type holder struct {
		Shown  *Values
		hidden *Values
		inline Values
		In     Inputs
	}
	held := holder{values, values, *values, w.in}
	for _, thing := range []any{values, *values, held, &held, []*Values{values}, map[string]any{"v": values}, w.in, &w.in} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			w.clean(verb, fmt.Sprintf(verb, thing))
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("text", "thing", thing)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("json", "thing", thing)
		encoded, err := json.Marshal(thing)
		if err != nil {
			t.Errorf("%T: %v", thing, err)
		}
		w.clean("the log", log.String())
		w.clean("JSON", string(encoded))
	}
	document, err := yaml.Marshal(map[string]any{"values": values})
	if err != nil {
		t.Error(err)
	}
	w.clean("YAML", string(document))
	if !strings.Contains(fmt.Sprint(values), GitOpsToken) {
		t.Errorf("the names are hidden too: %v", values)
	}
}

func TestSecretsDoNotLeakToStandardStreamsOrTemporaryFiles(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("HOME", temporary)
	streams := filepath.Join(temporary, "streams")
	file, err := os.Create(streams)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = file, file
	w := newWorld(t, nil)
	values, err := w.resolve()
	if err == nil {
		w.remote[TalosSecrets], err = values.Establish(t.Context(), TalosSecrets, canary(t))
	}
	w.guard(refusing(always, "", 500, "InternalServerError", "Something went wrong"))
	_, failed := w.resolve()
	os.Stdout, os.Stderr = stdout, stderr
	if err != nil || failed == nil {
		t.Fatal(err, failed)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{temporary, w.in.Folder} {
		err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			w.clean(path, string(data))
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if data, _ := os.ReadFile(streams); len(data) > 0 {
		t.Errorf("something was printed: %s", data)
	}
}

func TestRedactionHidesValuesHoweverALogShowsThem(t *testing.T) {
	talos := "cluster:\n    id: short\n    secret: " + canary(t) + "\ncerts:\n    key: " + base64.StdEncoding.EncodeToString([]byte(canary(t))) + "\n"
	w := newWorld(t, func(w *world) { w.remote[TalosSecrets] = talos })
	w.resolved()
	token := w.remote[GitOpsToken]
	quoted, err := json.Marshal(talos)
	if err != nil {
		t.Fatal(err)
	}
	log := strings.Join([]string{
		"plain " + token, "url https://git:" + token + "@host/", "base64 " + base64.StdEncoding.EncodeToString([]byte(token)),
		"json " + string(quoted), "lines\n> " + strings.ReplaceAll(talos, "\n", "\n> "), "header PVEAPIToken=" + w.bootstrap[ProxmoxAPIToken],
		"uuid 01234567-89ab-4cde-8f01-23456789abcd", w.bootstrap[StatePassphrase] + w.bootstrap[InfisicalClientSecret],
	}, "\n")
	redacted := redact.Text(log)
	w.clean("the log", redacted)
	for _, part := range []string{base64.StdEncoding.EncodeToString([]byte(token)), strings.Fields(talos)[4], strings.Fields(talos)[7], "01234567-89ab"} {
		if !strings.Contains(log, part) {
			t.Fatalf("the test looks for %q, which was not there", part)
		}
		if strings.Contains(redacted, part) {
			t.Errorf("%q was left in:\n%s", part, redacted)
		}
	}
	for _, part := range []string{"url https://git:", "cluster:", "id: short"} {
		if !strings.Contains(redacted, part) {
			t.Errorf("%q was hidden too:\n%s", part, redacted)
		}
	}
}

func TestTheProcessShowsNothingThatItResolved(t *testing.T) {
	w := newWorld(t, nil)
	w.in.AgeKey = "# public key: age1canarycanary\n" + w.in.AgeKey
	var token string
	w.guard(func(_ http.ResponseWriter, r *http.Request) bool {
		if bearer, has := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); has {
			token = bearer
		}
		return false
	})
	w.resolved()
	_, key, _ := strings.Cut(w.bootstrap[ProxmoxAPIToken], "=")
	for name, value := range map[string]string{
		"state passphrase": w.bootstrap[StatePassphrase], "Infisical's client secret": w.bootstrap[InfisicalClientSecret], "Infisical's access token": token,
		"Proxmox's token": w.bootstrap[ProxmoxAPIToken], "Proxmox's key": key, "Git token": w.remote[GitOpsToken], "Flux's age key": w.remote[FluxAgeKey],
		"age key": identity.FindString(w.in.AgeKey),
	} {
		if got := redact.Text("x " + value + " y"); got != "x "+redact.Mark+" y" || value == "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := redact.Text("public key: age1canarycanary, " + w.remote[GitOpsUsername]); strings.Contains(got, redact.Mark) {
		t.Errorf("what is no secret is hidden: %s", got)
	}
}

func TestAUsersNameIsNotHidden(t *testing.T) {
	values := NewValues()
	values.Add(map[string]string{GitOpsUsername: "flux-robot", GitOpsToken: "hunter2"}, "")
	if got := redact.Text("flux-robot:hunter2"); got != "flux-robot:"+redact.Mark {
		t.Errorf("got %s", got)
	}
}

func TestTheLongerOfTwoSecretsIsHiddenWhole(t *testing.T) {
	values := NewValues()
	values.Add(map[string]string{"a": "hunter2", "b": "hunter2-and-more", "c": "hunter2-and"}, "")
	if got := redact.Text("x hunter2-and-more y"); got != "x "+redact.Mark+" y" {
		t.Errorf("got %s", got)
	}
}

func TestNothingIsPutIntoValuesOfNoInfisical(t *testing.T) {
	if _, err := NewValues().Establish(t.Context(), TalosSecrets, "x"); err == nil {
		t.Error("something was put nowhere")
	}
}
