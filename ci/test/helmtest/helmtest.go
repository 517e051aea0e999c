// Package helmtest renders a chart as Helm does, without a cluster, for tests of what a chart installs.
package helmtest

import (
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Release is a chart's folder, and how it is installed.
type Release struct {
	Chart, Name, Namespace string
	Values                 map[string]any
}

// Objects are what a release would create, CRDs aside.
func Objects(t testing.TB, release Release) []*unstructured.Unstructured {
	t.Helper()
	chart, err := loader.LoadDir(release.Chart)
	if err != nil {
		t.Fatal(err)
	}
	if err := chartutil.ProcessDependenciesWithMerge(chart, release.Values); err != nil {
		t.Fatal(err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.4", Major: "1", Minor: "36"}
	values, err := chartutil.ToRenderValues(chart, release.Values, chartutil.ReleaseOptions{Name: release.Name, Namespace: release.Namespace}, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if extension := path.Ext(name); extension == ".yaml" || extension == ".yml" {
			objects = append(objects, decode(t, name, files[name])...)
		}
	}
	return objects
}

func decode(t testing.TB, name, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 64<<10)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatalf("%s: %v in\n%s", name, err, text)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
