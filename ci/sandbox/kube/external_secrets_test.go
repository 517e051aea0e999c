//go:build linux

package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const externalSecret = `
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: token, namespace: default}
spec:
  refreshInterval: 1h
  secretStoreRef: {kind: SecretStore, name: pretended}
  target: {name: token}
  data: [{secretKey: word, remoteRef: {key: /word}}]
`

var operatorDeployments = []string{"external-secrets", "external-secrets-webhook", "external-secrets-cert-controller"}

func installExternalSecrets(w *world) {
	w.t.Helper()
	crds, err := os.ReadFile(filepath.Join(filepath.Dir(w.options.Binaries.Images[ImageExternalSecrets]), "charts/external-secrets/crds/bundle.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(string(crds))
	manifests, err := os.ReadFile("testdata/external-secrets.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(string(manifests))
}

func TestTheRealExternalSecretsOperatorMakesASecret(t *testing.T) {
	operator := programs(t, "external-secrets")["external-secrets"]
	w := newWorld(t, map[string]string{ImageExternalSecrets: operator}, quick(t, nil))
	client := w.start()
	installExternalSecrets(w)
	for _, name := range operatorDeployments {
		w.available(client, "external-secrets", name, time.Minute)
	}
	stores := dynamic.NewForConfigOrDie(w.Admin()).Resource(schema.GroupVersionResource{
		Group: "external-secrets.io", Version: "v1", Resource: "secretstores",
	}).Namespace("default")
	store := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "external-secrets.io/v1", "kind": "SecretStore", "metadata": map[string]any{"name": "pretended"},
		"spec": map[string]any{"provider": map[string]any{"fake": map[string]any{"data": []any{map[string]any{"key": "/word", "value": "found"}}}}},
	}}
	w.eventually(time.Minute, "the webhook accepts a store", func(ctx context.Context) error {
		_, err := stores.Create(ctx, store, metav1.CreateOptions{})
		return err
	})
	w.apply(externalSecret)
	w.eventually(30*time.Second, "the operator has made the Secret", func(ctx context.Context) error {
		made, err := client.CoreV1().Secrets("default").Get(ctx, "token", metav1.GetOptions{})
		if err == nil && string(made.Data["word"]) != "found" {
			err = fmt.Errorf("it holds %v", made.Data)
		}
		return err
	})

	// Secrets are encrypted in etcd, as Talos does it.
	data, err := os.ReadFile(filepath.Join(w.options.Folder, "etcd", "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "k8s:enc:secretbox:v1:key2:") {
		t.Error("etcd holds no encrypted Secret")
	}

	if err := client.AppsV1().Deployments("external-secrets").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(20*time.Second, "all three processes are gone", func(context.Context) error {
		if left := processesOf(t, operator); len(left) > 0 {
			return fmt.Errorf("processes %v", left)
		}
		return nil
	})
}
