// Package postrender changes what a chart renders where the chart has no value for it. Helm hands a release's manifests
// through `castle-cluster postrender CHART` before it sends them to the cluster.
package postrender

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"tazlab.net/castle/ci/cluster/layers"
)

// object is one of a release.
type object = *unstructured.Unstructured

// edit changes the objects of some kinds, in place.
type edit struct {
	kinds []string
	apply func(ctx context.Context, cluster Cluster, objects []object) error
}

// treatment is what a chart needs.
type treatment struct {
	edits []edit
	// definedFirst is the release whose CRDs are served before the rest of it is sent; nil where Helm's order does.
	definedFirst *layers.Release
}

// treatments are by chart.
var treatments = map[string]treatment{
	"external-secrets": {edits: []edit{
		{[]string{"Deployment"}, earlyReadiness},
		{[]string{"ClusterRole"}, aggregateNothing},
		{[]string{"Secret", "ValidatingWebhookConfiguration"}, externalSecretsWebhook.beforehand},
	}},
	"metallb": {
		edits: []edit{
			{[]string{"Secret"}, metallbWebhook.beforehand},
		},
		definedFirst: &metallbRelease,
	},
}

// Charts lists the charts that Run knows.
func Charts() []string { return slices.Sorted(maps.Keys(treatments)) }

// Run copies the manifests of a chart's release from in to out, changed, once the cluster is ready for them. Objects of other kinds are handed on as
// they are: the CRDs among them can be a megabyte.
func Run(ctx context.Context, chart string, cluster Cluster, in io.Reader, out io.Writer) error {
	treatment, known := treatments[chart]
	if !known {
		return fmt.Errorf("chart %q is not one that is changed after it is rendered: there are %s", chart, strings.Join(Charts(), ", "))
	}
	documents, err := split(in)
	if err != nil {
		return fmt.Errorf("read the manifests of %s: %w", chart, err)
	}
	for _, edit := range treatment.edits {
		if err := edit.run(ctx, cluster, documents); err != nil {
			return fmt.Errorf("change the manifests of %s: %w", chart, err)
		}
	}
	if treatment.definedFirst != nil {
		if err := define(ctx, cluster, *treatment.definedFirst, documents); err != nil {
			return fmt.Errorf("have the kinds of %s served: %w", chart, err)
		}
	}
	for _, document := range documents {
		if _, err := fmt.Fprintf(out, "---\n%s\n", bytes.TrimSpace(document)); err != nil {
			return err
		}
	}
	return nil
}

// run reads the documents of the edit's kinds and writes them anew.
func (e edit) run(ctx context.Context, cluster Cluster, documents [][]byte) error {
	places, objects, err := parse(documents, e.kinds...)
	if err != nil {
		return err
	}
	if err := e.apply(ctx, cluster, objects); err != nil {
		return err
	}
	for i, place := range places {
		changed, err := objects[i].MarshalJSON() // which is YAML too
		if err != nil {
			return err
		}
		documents[place] = changed
	}
	return nil
}

// parse reads the documents of some kinds, and tells where they stand among the others.
func parse(documents [][]byte, kinds ...string) (places []int, objects []object, err error) {
	for i, document := range documents {
		if !slices.Contains(kinds, kindOf(document)) {
			continue
		}
		o := object(&unstructured.Unstructured{})
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return nil, nil, fmt.Errorf("read a %s: %w", kindOf(document), err)
		}
		places, objects = append(places, i), append(objects, o)
	}
	return places, objects, nil
}

// split takes a stream of YAML documents apart.
func split(in io.Reader) ([][]byte, error) {
	var documents [][]byte
	reader := yaml.NewYAMLReader(bufio.NewReader(in))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(document)) > 0 {
			documents = append(documents, document)
		}
	}
}

var kindLine = regexp.MustCompile(`(?m)^(?:kind: *|\{.*?"kind":)"?([A-Za-z]+)"?`)

// kindOf reads the kind of a document without parsing all of it; "" where it has none.
func kindOf(document []byte) string {
	match := kindLine.FindSubmatch(document)
	if match == nil {
		return ""
	}
	return string(match[1])
}
