package postrender

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// release is shaped as the chart of External Secrets Operator renders it.
const releaseFile = "testdata/external-secrets.yaml"

// secrets is a cluster that has what it answers, and serves every kind at once.
type secrets func(ctx context.Context, namespace, name string) (map[string][]byte, error)

func (s secrets) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	return s(ctx, namespace, name)
}
func (secrets) Define(context.Context, []object) error { return nil }

func nothing(context.Context, string, string) (map[string][]byte, error) { return nil, nil }

func render(t *testing.T, cluster secrets) map[string][]byte {
	t.Helper()
	manifests, err := os.ReadFile(releaseFile)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Run(t.Context(), "external-secrets", cluster, bytes.NewReader(manifests), &out); err != nil {
		t.Fatal(err)
	}
	documents, err := split(&out)
	if err != nil {
		t.Fatal(err)
	}
	byKind := map[string][]byte{}
	for _, document := range documents {
		byKind[kindOf(document)] = document
	}
	return byKind
}

func read[T any](t *testing.T, document []byte) T {
	t.Helper()
	var object T
	if err := yaml.Unmarshal(document, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestNoRoleOfANamespaceGetsTheOperatorsKinds(t *testing.T) {
	t.Parallel()
	role := read[rbacv1.ClusterRole](t, render(t, nothing)["ClusterRole"])
	if len(role.Rules) != 1 || role.Labels["app.kubernetes.io/name"] != "external-secrets" {
		t.Errorf("more than its aggregation is gone: %+v", role)
	}
	for name := range role.Labels {
		if strings.HasPrefix(name, aggregation) {
			t.Errorf("it has the label %s", name)
		}
	}
}

func TestTheWebhooksCertificateIsThereBeforeItStarts(t *testing.T) {
	t.Parallel()
	rendered := render(t, nothing)
	secret := read[corev1.Secret](t, rendered["Secret"])
	if _, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"]); err != nil {
		t.Errorf("certificate and key do not belong together: %v", err)
	}
	for _, webhook := range read[admissionv1.ValidatingWebhookConfiguration](t, rendered["ValidatingWebhookConfiguration"]).Webhooks {
		if !bytes.Equal(webhook.ClientConfig.CABundle, secret.Data["ca.crt"]) {
			t.Errorf("webhook %s does not name the authority", webhook.Name)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(webhook.ClientConfig.CABundle)
		block, _ := pem.Decode(secret.Data["tls.crt"])
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		service := webhook.ClientConfig.Service
		// The operator's controller makes another where it would not hold for 90 days more.
		options := x509.VerifyOptions{Roots: roots, DNSName: service.Name + "." + service.Namespace + ".svc", CurrentTime: time.Now().Add(90 * 24 * time.Hour)}
		if _, err := certificate.Verify(options); err != nil {
			t.Errorf("the API server would refuse %s: %v", webhook.Name, err)
		}
	}
}

// TestMetalLBHasItsCertificateBeforeItStarts by the names that its rotator looks for: it makes another one where one of them differs.
func TestMetalLBHasItsCertificateBeforeItStarts(t *testing.T) {
	t.Parallel()
	const manifests = "kind: CustomResourceDefinition\nmetadata: {name: x}\n---\nkind: Secret\napiVersion: v1\nmetadata: {name: metallb-webhook-cert, namespace: metallb-system}\n---\nkind: Secret\napiVersion: v1\nmetadata: {name: other, namespace: metallb-system}\n"
	var out bytes.Buffer
	if err := Run(t.Context(), "metallb", secrets(nothing), strings.NewReader(manifests), &out); err != nil {
		t.Fatal(err)
	}
	documents, err := split(&out)
	if err != nil {
		t.Fatal(err)
	}
	secret, other := read[corev1.Secret](t, documents[1]), read[corev1.Secret](t, documents[2])
	if len(other.Data) > 0 {
		t.Error("another Secret was changed")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	for file, name := range map[string]string{"ca.crt": "cert", "tls.crt": "metallb-webhook-service.metallb-system.svc"} {
		block, _ := pem.Decode(secret.Data[file])
		if block == nil {
			t.Fatalf("%s is %q", file, secret.Data[file])
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		// For 90 days more, as ValidCert in pkg/rotator of cert-controller v0.10 asks.
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: time.Now().Add(90 * 24 * time.Hour)}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// The operator's controller takes an authority of another name, or a key that it cannot read, for none, and makes one anew.
func TestTheAuthorityIsOneThatTheOperatorCanRenewBy(t *testing.T) {
	t.Parallel()
	secret := read[corev1.Secret](t, render(t, nothing)["Secret"])
	key, _ := pem.Decode(secret.Data["ca.key"])
	if _, err := x509.ParsePKCS1PrivateKey(key.Bytes); err != nil {
		t.Errorf("the authority's key: %v", err)
	}
	block, _ := pem.Decode(secret.Data["ca.crt"])
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.VerifyHostname("external-secrets"); err != nil {
		t.Error(err)
	}
	if _, err := tls.X509KeyPair(secret.Data["ca.crt"], secret.Data["ca.key"]); err != nil {
		t.Error(err)
	}
}

func TestACertificateThatTheClusterHasIsKept(t *testing.T) {
	t.Parallel()
	had, err := newCertificate("external-secrets", "external-secrets", "external-secrets-webhook.external-secrets.svc")
	if err != nil {
		t.Fatal(err)
	}
	rendered := render(t, func(_ context.Context, namespace, name string) (map[string][]byte, error) {
		if namespace != "external-secrets" || name != "external-secrets-webhook" {
			t.Errorf("looked for %s/%s", namespace, name)
		}
		return had, nil
	})
	secret := read[corev1.Secret](t, rendered["Secret"])
	for file, value := range had {
		if !bytes.Equal(secret.Data[file], value) {
			t.Errorf("%s was changed", file)
		}
	}
	webhook := read[admissionv1.ValidatingWebhookConfiguration](t, rendered["ValidatingWebhookConfiguration"]).Webhooks[0]
	if !bytes.Equal(webhook.ClientConfig.CABundle, had["ca.crt"]) {
		t.Error("the webhook names another authority")
	}
}

func TestAClusterThatCannotBeAskedIsNotOneWithoutACertificate(t *testing.T) {
	t.Parallel()
	manifests, err := os.Open(releaseFile)
	if err != nil {
		t.Fatal(err)
	}
	defer manifests.Close()
	down := errors.New("connection refused")
	err = Run(t.Context(), "external-secrets", secrets(func(context.Context, string, string) (map[string][]byte, error) { return nil, down }), manifests, &bytes.Buffer{})
	if !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
}

func TestReadinessIsAskedEarly(t *testing.T) {
	t.Parallel()
	container := read[appsv1.Deployment](t, render(t, nothing)["Deployment"]).Spec.Template.Spec.Containers[0]
	if probe := container.ReadinessProbe; probe.InitialDelaySeconds != 1 || probe.PeriodSeconds != 2 || probe.HTTPGet.Path != "/readyz" {
		t.Errorf("readiness probe %+v", probe)
	}
	if container.StartupProbe.InitialDelaySeconds != 20 {
		t.Error("another probe was changed")
	}
}

func TestWhatIsNotChangedIsHandedOnAsItWas(t *testing.T) {
	t.Parallel()
	manifests, err := os.ReadFile(releaseFile)
	if err != nil {
		t.Fatal(err)
	}
	crd := render(t, nothing)["CustomResourceDefinition"]
	if !bytes.Contains(manifests, bytes.TrimSpace(crd)) || len(crd) == 0 {
		t.Errorf("the CRD is now\n%s", crd)
	}
}

func TestAChartThatIsShapedOtherwiseIsRefused(t *testing.T) {
	t.Parallel()
	for name, manifests := range map[string]string{
		"no Secret":    "kind: Deployment\nmetadata: {name: x}\nspec: {template: {spec: {containers: []}}}\n",
		"the Service":  "kind: Secret\nmetadata: {name: other, namespace: n, labels: {external-secrets.io/component: webhook}}\n",
		"nothing-such": "",
	} {
		chart := "external-secrets"
		if name == "nothing-such" {
			chart = name
		}
		err := Run(t.Context(), chart, secrets(nothing), strings.NewReader(manifests), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
