package gitopsrepo

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// built is a repository as Flux reads it: what each of its Kustomizations applies.
type built struct {
	t              testing.TB
	files          Files
	folders        filesys.FileSystem
	root           []*unstructured.Unstructured            // what clusters/NAME is
	kustomizations map[string]*unstructured.Unstructured   // by name
	applied        map[string][]*unstructured.Unstructured // by the Kustomization's name
}

func buildAll(t testing.TB, files Files) *built {
	t.Helper()
	b := &built{t: t, files: files, folders: filesys.MakeFsInMemory(), kustomizations: map[string]*unstructured.Unstructured{}, applied: map[string][]*unstructured.Unstructured{}}
	for name, text := range files {
		if err := b.folders.WriteFile("/"+name, text); err != nil {
			t.Fatal(err)
		}
	}
	b.root = b.build("clusters/green")
	for _, object := range b.root {
		if object.GetKind() != "Kustomization" {
			t.Errorf("clusters/green has %s %s: only Kustomizations belong there", object.GetKind(), object.GetName())
			continue
		}
		b.kustomizations[object.GetName()] = object
		folder := field(object, "spec", "path")
		if !strings.HasPrefix(folder, "./") {
			t.Errorf("Kustomization %s: path %q is not from the repository's root", object.GetName(), folder)
		}
		b.applied[object.GetName()] = b.build(strings.TrimPrefix(folder, "./"))
	}
	return b
}

// build makes the resources of a folder, as kustomize does.
func (b *built) build(folder string) []*unstructured.Unstructured {
	b.t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(b.folders, "/"+folder)
	if err != nil {
		b.t.Fatalf("%s: %v", folder, err)
	}
	var list []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		object := &unstructured.Unstructured{}
		text, err := resource.MarshalJSON()
		if err == nil {
			err = object.UnmarshalJSON(text)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		list = append(list, object)
	}
	return list
}

// all are the objects of all Kustomizations.
func (b *built) all() []*unstructured.Unstructured {
	return slices.Concat(slices.Collect(maps.Values(b.applied))...)
}

func (b *built) ofKind(kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(b.all(), func(object *unstructured.Unstructured) bool { return object.GetKind() != kind })
}

func (b *built) find(kind, namespace, name string) *unstructured.Unstructured {
	for _, object := range b.all() {
		if object.GetKind() == kind && object.GetNamespace() == namespace && object.GetName() == name {
			return object
		}
	}
	return nil
}

// dependsOn are the names of the Kustomizations that one waits for itself.
func (b *built) dependsOn(name string) []string {
	var names []string
	list, _, _ := unstructured.NestedSlice(b.kustomizations[name].Object, "spec", "dependsOn")
	for _, item := range list {
		names = append(names, item.(map[string]any)["name"].(string))
	}
	return names
}

// before are all Kustomizations that have to be ready before one is applied.
func (b *built) before(name string) map[string]bool {
	seen := map[string]bool{}
	var visit func(string)
	visit = func(at string) {
		for _, next := range b.dependsOn(at) {
			if b.kustomizations[next] == nil {
				b.t.Errorf("Kustomization %s depends on %s, which is not there", at, next)
				continue
			}
			if !seen[next] {
				seen[next] = true
				visit(next)
			}
		}
	}
	visit(name)
	return seen
}

func field(object *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}

// list is a list of mappings in an object.
func list(object map[string]any, path ...string) []map[string]any {
	items, _, _ := unstructured.NestedSlice(object, path...)
	var mappings []map[string]any
	for _, item := range items {
		mappings = append(mappings, item.(map[string]any))
	}
	return mappings
}

// listed are the files that the kustomization.yaml files below a folder name, the folder's own included.
func (b *built) listed(folder string) map[string]bool {
	seen := map[string]bool{folder + "/kustomization.yaml": true}
	content, err := b.folders.ReadFile("/" + folder + "/kustomization.yaml")
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		resource, is := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !is {
			continue
		}
		at := path.Join(folder, resource)
		if b.folders.IsDir("/" + at) {
			maps.Copy(seen, b.listed(at))
		} else {
			seen[at] = true
		}
	}
	return seen
}
