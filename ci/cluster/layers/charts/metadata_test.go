package charts

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A stream as controller-gen writes it, and projects publish: comments, several objects, what looks like other types.
const definitions = `---
# first
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.20.1
  name: one.example.org
spec: {default: "on", pattern: ^\d+$, number: 1.0}
---
kind: CustomResourceDefinition
metadata:
  name: two.example.org
  labels: {app.kubernetes.io/instance: theirs, kept: "1"}
`

func TestDefinitionsSayWhoBroughtThem(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(definitions)) }))
	t.Cleanup(server.Close)
	p := newProject(t, map[string]string{
		"terragrunt/charts.yaml": "charts:\n  own: {version: 1.0.0, overlay: own, crds: [{tool: some-controller, path: bases, url: '" + server.URL + "/all.yaml'}],\n" +
			"    metadata: {labels: {app.kubernetes.io/instance: flux-system, app.kubernetes.io/version: v2.9.5}, annotations: {prune: disabled}}}\n",
		"terragrunt/own/Chart.yaml":           "version: 1.0.0\n",
		"kept/some-controller/bases/all.yaml": definitions,
	})
	composed, fetched := filepath.Join(t.TempDir(), "charts"), t.TempDir()
	if _, err := ComposeAll(p.terragrunt, composed, p.folderOf); err != nil {
		t.Fatal(err)
	}
	if err := FetchAll(t.Context(), p.terragrunt, fetched); err != nil {
		t.Fatal(err)
	}
	ours := map[string]any{"app.kubernetes.io/component": "some-controller", "app.kubernetes.io/instance": "flux-system", "app.kubernetes.io/version": "v2.9.5"}
	second := map[string]any{"kept": "1"}
	for name, value := range ours {
		second[name] = value
	}
	want := []map[string]any{
		{"kind": "CustomResourceDefinition", "spec": map[string]any{"default": "on", "pattern": `^\d+$`, "number": 1.0}, "metadata": map[string]any{
			"name": "one.example.org", "labels": ours,
			"annotations": map[string]any{"controller-gen.kubebuilder.io/version": "v0.20.1", "prune": "disabled"}}},
		{"kind": "CustomResourceDefinition", "metadata": map[string]any{
			"name": "two.example.org", "labels": second, "annotations": map[string]any{"prune": "disabled"}}},
	}
	for _, folder := range []string{composed, fetched} {
		file, err := os.Open(filepath.Join(folder, "own", "crds", "some-controller", "all.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		decoder := yaml.NewDecoder(file)
		var got []map[string]any
		for {
			var object map[string]any
			if decoder.Decode(&object) != nil {
				break
			}
			got = append(got, object)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%v, want\n%v", file.Name(), got, want)
		}
	}
}
