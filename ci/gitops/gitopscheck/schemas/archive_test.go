package schemas

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/base/golden"
)

// listed is sources.yaml.
type listed struct {
	Kubernetes struct{ Version string }
	Sources    []struct {
		Project, Module, Version, Files string
		Exact                           bool
		Whole                           []string
	}
}

func sources(t *testing.T) listed {
	t.Helper()
	text, err := os.ReadFile("sources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list listed
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// The archive is made of what sources.yaml names: whoever changes a version there has to write it anew.
func TestTheArchiveHoldsWhatIsListed(t *testing.T) {
	list := sources(t)
	if golden.Update() {
		write(t, list)
		return
	}
	archive, err := readArchive()
	if err != nil {
		t.Fatal(err)
	}
	if archive.Kubernetes.Version != list.Kubernetes.Version || len(archive.Kubernetes.Definitions) < 500 {
		t.Errorf("Kubernetes %s with %d definitions: %s is listed", archive.Kubernetes.Version, len(archive.Kubernetes.Definitions), list.Kubernetes.Version)
	}
	if len(archive.Sources) != len(list.Sources) {
		t.Fatalf("%d sources, %d are listed", len(archive.Sources), len(list.Sources))
	}
	for i, want := range list.Sources {
		got := archive.Sources[i]
		if got.Project != want.Project || got.Version != want.Version || got.Exact != want.Exact || !slices.Equal(got.Whole, want.Whole) || len(got.Definitions) == 0 {
			t.Errorf("%s %s with %d definitions: %s %s is listed; run this test with -update", got.Project, got.Version, len(got.Definitions), want.Project, want.Version)
		}
	}
}

// write makes the archive out of the modules, which Go downloads and verifies.
func write(t *testing.T, list listed) {
	t.Helper()
	archive := Archive{Kubernetes: openAPI(t, module(t, "k8s.io/kubernetes", list.Kubernetes.Version))}
	archive.Kubernetes.Version = list.Kubernetes.Version
	for _, from := range list.Sources {
		source := Source{Project: from.Project, Version: from.Version, Exact: from.Exact, Whole: from.Whole}
		files, err := filepath.Glob(filepath.Join(module(t, from.Module, from.Version), from.Files))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source.Definitions = append(source.Definitions, definitionsIn(t, file)...)
		}
		archive.Sources = append(archive.Sources, source)
	}
	var data bytes.Buffer
	packer, err := gzip.NewWriterLevel(&data, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(json.NewEncoder(packer).Encode(archive), packer.Close(), os.WriteFile("schemas.json.gz", data.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// module is the folder of a Go module.
func module(t *testing.T, name, version string) string {
	t.Helper()
	command := exec.Command("go", "mod", "download", "-json", name+"@"+version)
	command.Dir = t.TempDir()
	out, err := command.Output()
	var told struct{ Dir string }
	if err := errors.Join(err, json.Unmarshal(out, &told)); err != nil {
		t.Fatalf("%s@%s: %v\n%s", name, version, err, out)
	}
	return told.Dir
}

func definitionsIn(t *testing.T, file string) []CRD {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []CRD
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var object map[string]any
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if crd, is := readDefinition(object); is {
			for _, version := range crd.Versions {
				bare(version.Schema, true)
				delete(version.Schema["properties"].(map[string]any), "status") // nobody applies it
			}
			all = append(all, crd)
		}
	}
}

func openAPI(t *testing.T, folder string) KubernetesSchemas {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "api/openapi-spec/swagger.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Definitions map[string]any
		Paths       map[string]struct {
			Post struct {
				Kind map[string]string `json:"x-kubernetes-group-version-kind"`
			}
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	made := KubernetesSchemas{Definitions: document.Definitions}
	for _, definition := range document.Definitions {
		bare(definition, true)
	}
	for path, at := range document.Paths {
		if of := at.Post.Kind; of != nil && !strings.Contains(path, "{") {
			made.ClusterScoped = append(made.ClusterScoped, of["group"]+"/"+of["kind"])
		}
	}
	slices.Sort(made.ClusterScoped)
	made.ClusterScoped = slices.Compact(made.ClusterScoped)
	return made
}

// bare takes away what only people read, and rules that nobody evaluates here. inSchema says that the keys of value are
// keywords, and not the names of fields, one of which may be "description".
func bare(value any, inSchema bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			prose := key == "description" || key == "example" || key == "x-kubernetes-validations" || strings.HasPrefix(key, "x-kubernetes-patch") ||
				strings.HasPrefix(key, "x-kubernetes-list") || key == "x-kubernetes-map-type"
			if inSchema && prose {
				delete(value, key)
				continue
			}
			bare(inner, !inSchema || key != "properties" && key != "default" && key != "enum")
		}
	case []any:
		for _, inner := range value {
			bare(inner, inSchema)
		}
	}
}
