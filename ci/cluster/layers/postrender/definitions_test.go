package postrender

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/test/kubetest"
)

const metallbSecret = "\n---\nkind: Secret\napiVersion: v1\nmetadata: {name: metallb-webhook-cert, namespace: metallb-system}\n"

// TestMetalLBsKindsAreServedBeforeItsProgramsAreSent, by a real API server, and those that it has already are left alone.
func TestMetalLBsKindsAreServedBeforeItsProgramsAreSent(t *testing.T) {
	server := kubetest.Start(t)
	const had, made = "ipaddresspools.metallb.io", "l2advertisements.metallb.io"
	server.InstallCRDs("metallb", "ipaddresspools")
	get := func(name string) *unstructured.Unstructured {
		t.Helper()
		definition, err := server.Client().Resource(kube.CRDs).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return definition
	}
	untouched := get(had).GetResourceVersion()
	client, err := kube.FromEnv(server.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	manifests := string(kubetest.Definitions(t, "metallb", "ipaddresspools", "l2advertisements")) + metallbSecret
	rendered := &gate{t: t, passes: func() {
		definition := get(made)
		if seen, ok := kube.Established(definition); !ok {
			t.Errorf("the release is sent before its kinds are served: %s", seen)
		}
		if marks := definition.GetAnnotations(); marks["meta.helm.sh/release-name"] != "metallb" ||
			marks["meta.helm.sh/release-namespace"] != "metallb-system" || definition.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" {
			t.Errorf("Helm would not take it for the release's: %v, %v", marks, definition.GetLabels())
		}
	}}
	if err := Run(t.Context(), "metallb", InCluster(client), strings.NewReader(manifests), rendered); err != nil {
		t.Fatal(err)
	}
	if get(had).GetResourceVersion() != untouched {
		t.Error("a CRD that was there is changed")
	}
	if strings.Contains(rendered.String(), "meta.helm.sh") {
		t.Error("the marks are in what Helm gets, which sets its own")
	}
}

// gate looks at the cluster at the first byte that Helm gets.
type gate struct {
	bytes.Buffer
	t      *testing.T
	passes func()
}

func (g *gate) Write(p []byte) (int, error) {
	if g.passes != nil {
		g.passes()
		g.passes = nil
	}
	return g.Buffer.Write(p)
}

// refusing is a cluster that defines nothing.
type refusing struct {
	secrets
	err error
}

func (r refusing) Define(context.Context, []object) error { return r.err }

func TestNothingIsSentWhereTheKindsCannotBeDefined(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	var out bytes.Buffer
	err := Run(t.Context(), "metallb", refusing{nothing, down}, strings.NewReader("kind: CustomResourceDefinition\nmetadata: {name: x}"+metallbSecret), &out)
	if !errors.Is(err, down) || out.Len() > 0 {
		t.Errorf("got %v, and Helm gets %d bytes", err, out.Len())
	}
	err = Run(t.Context(), "metallb", refusing{nothing, down}, strings.NewReader(metallbSecret), &out)
	if err == nil || !strings.Contains(err.Error(), "CustomResourceDefinition") {
		t.Errorf("a chart that brings no CRDs: %v", err)
	}
}
