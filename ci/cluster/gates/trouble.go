package gates

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// patience tells the errors that pass from those that do not. One belongs to one wait.
type patience struct {
	grace   time.Duration
	refused time.Time // since when the credentials are refused without a break
}

// judge returns an error that ends the wait, or nil when waiting longer may help. A nil err counts as a success.
func (p *patience) judge(err error) error {
	_, foreign := errors.AsType[x509.UnknownAuthorityError](err)
	switch {
	case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && !answeredByWebhook(err):
		return fmt.Errorf("not allowed: %w", err)
	case apierrors.IsUnauthorized(err):
		return p.outlast(fmt.Errorf("the API refuses the client certificate; is it of this cluster's machine secrets: %w", err))
	case foreign:
		return p.outlast(fmt.Errorf("the API's certificate is not of this cluster's CA; does another cluster hold the address: %w", brief(err)))
	default:
		p.refused = time.Time{}
		return nil
	}
}

// outlast lets an error end the wait once it has lasted for the grace.
func (p *patience) outlast(err error) error {
	if p.refused.IsZero() {
		p.refused = time.Now()
	}
	if time.Since(p.refused) < p.grace {
		return nil
	}
	return err
}

// unauthorized is what the API's clients return for a 401.
func unauthorized(url string) error {
	return apierrors.NewUnauthorized("Unauthorized by " + url)
}

// brief leaves the request's URL out of a network error.
func brief(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}

var customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// unknownKind explains why the API does not know a resource. The error is not nil when it never will: its definition is
// there and established, and does not serve the version.
func (k *Kube) unknownKind(ctx context.Context, resource schema.GroupVersionResource) (string, error) {
	if !strings.Contains(resource.Group, ".") || strings.HasSuffix(resource.Group, ".k8s.io") {
		return fmt.Sprintf("the API does not serve %s yet", resource.GroupResource()), nil
	}
	name := resource.GroupResource().String()
	definition, err := k.dynamic.Resource(customResourceDefinitions).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("CRD %s does not exist yet", name), nil
	}
	if err != nil {
		return fmt.Sprintf("CRD %s: %v", name, brief(err)), nil
	}
	if seen, ok := established(definition); !ok {
		return fmt.Sprintf("CRD %s: %s", name, seen), nil
	}
	served := servedVersions(definition)
	if !slices.Contains(served, resource.Version) {
		return "", fmt.Errorf("CRD %s serves %s, not %s; is another version of its chart installed", name, strings.Join(served, ", "), resource.Version)
	}
	return fmt.Sprintf("CRD %s is established, not served yet", name), nil
}

func servedVersions(definition *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var served []string
	for _, version := range versions {
		if version, ok := version.(map[string]any); ok && version["served"] == true {
			name, _ := version["name"].(string)
			served = append(served, name)
		}
	}
	return served
}
