//go:build linux

package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// first are the kinds that others need, which Talos applies before them.
var first = []string{"Namespace", "CustomResourceDefinition"}

// applyManifests makes the objects of manifests that are not there, and changes none that is: ManifestApplyController of siderolabs/talos,
// internal/app/machined/pkg/controllers/k8s/manifest_apply.go. What cannot be made is an error, and the caller tries again.
func applyManifests(ctx context.Context, config *rest.Config, manifests []string) error {
	if config == nil || len(manifests) == 0 {
		return nil
	}
	var objects []*unstructured.Unstructured
	for _, text := range manifests {
		for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
			object := &unstructured.Unstructured{}
			switch err := decoder.Decode(&object.Object); {
			case errors.Is(err, io.EOF):
			case err != nil:
				return fmt.Errorf("an inline manifest: %w", err)
			case len(object.Object) > 0:
				objects = append(objects, object)
				continue
			default:
				continue
			}
			break
		}
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		rank := func(o *unstructured.Unstructured) int {
			if at := slices.Index(first, o.GetKind()); at >= 0 {
				return at
			}
			return len(first)
		}
		return rank(a) - rank(b)
	})
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("inline manifest %s %s: %w", kind.Kind, object.GetName(), err)
		}
		made := client.Resource(mapping.Resource).Namespace(object.GetNamespace())
		// Asked first, as Talos does: a Service that is there would be refused for its address, which is taken, and not for its name.
		if _, err = made.Get(ctx, object.GetName(), metav1.GetOptions{}); apierrors.IsNotFound(err) {
			_, err = made.Create(ctx, object, metav1.CreateOptions{FieldManager: "talos"})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("inline manifest %s %s: %w", kind.Kind, object.GetName(), err)
		}
	}
	return nil
}
