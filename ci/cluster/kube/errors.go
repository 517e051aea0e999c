package kube

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
		return p.outlast(fmt.Errorf("the API's certificate is not of this cluster's CA; does another cluster hold the address: %w", Brief(err)))
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

// Brief leaves the request's URL out of a network error.
func Brief(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}

// RefusedBy says whether a webhook of that name refused a request.
func RefusedBy(err error, webhook string) bool {
	return answeredByWebhook(err) && strings.Contains(err.Error(), fmt.Sprintf("admission webhook %q ", webhook))
}

// answeredByWebhook says whether the error is a webhook's own no, which may have any status code. The API server's
// wording is the only sign of it.
func answeredByWebhook(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "admission webhook ") && strings.Contains(err.Error(), "denied the request")
}

// IsUnknownKind tells a kind that is not served from an object, such as a namespace, that is not found.
func IsUnknownKind(err error) bool {
	return apierrors.IsNotFound(err) &&
		(apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) || strings.Contains(err.Error(), "could not find the requested resource"))
}

// UnknownKind explains why the API does not know a resource. The answer is fatal when it never will: its definition is
// there and established, and does not serve the version.
func (c *Client) UnknownKind(ctx context.Context, resource schema.GroupVersionResource) Answer {
	if !strings.Contains(resource.Group, ".") || strings.HasSuffix(resource.Group, ".k8s.io") {
		return Answer{Seen: fmt.Sprintf("the API does not serve %s yet", resource.GroupResource())}
	}
	name := resource.GroupResource().String()
	definition, err := c.Resource(CRDs).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Answer{Seen: fmt.Sprintf("CRD %s does not exist yet", name)}
	}
	if err != nil {
		return Answer{Seen: fmt.Sprintf("CRD %s: %v", name, Brief(err))}
	}
	if seen, ok := Established(definition); !ok {
		return Answer{Seen: fmt.Sprintf("CRD %s: %s", name, seen)}
	}
	served := servedVersions(definition)
	if !slices.Contains(served, resource.Version) {
		return Answer{Fatal: fmt.Errorf("CRD %s serves %s, not %s; is another version of its chart installed", name, strings.Join(served, ", "), resource.Version)}
	}
	return Answer{Seen: fmt.Sprintf("CRD %s is established, not served yet", name)}
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
