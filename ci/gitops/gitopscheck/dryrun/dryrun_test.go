package dryrun_test

import (
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"tazlab.net/castle/ci/gitops/gitopscheck/dryrun"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
	"tazlab.net/castle/ci/test/kubetest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func object(apiVersion, kind, namespace, name string, fields map[string]any) *manifests.Object {
	made := &manifests.Object{Unstructured: unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}}
	made.SetName(name)
	made.SetNamespace(namespace)
	for field, value := range fields {
		made.Object[field] = value
	}
	return made
}

// kubeconfig writes one of the server's administrator.
func kubeconfig(t *testing.T, server *kubetest.Server) string {
	t.Helper()
	config := api.NewConfig()
	config.Clusters["test"] = &api.Cluster{Server: server.Host, CertificateAuthorityData: server.CA()}
	config.AuthInfos["test"] = &api.AuthInfo{ClientCertificateData: []byte(server.Getenv("KUBE_CLIENT_CERT_DATA")), ClientKeyData: []byte(server.Getenv("KUBE_CLIENT_KEY_DATA"))}
	config.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	name := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, name); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTheClusterSaysWhatItWouldRefuseAndChangesNothing(t *testing.T) {
	server := kubetest.Start(t)
	cluster, err := dryrun.Connect(kubeconfig(t, server))
	if err != nil {
		t.Fatal(err)
	}
	server.Put(configMaps, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: somebodys, namespace: default}\ndata: {a: theirs}\n")
	for _, test := range []struct {
		object         *manifests.Object
		refused, later string
	}{
		{object: object("v1", "ConfigMap", "default", "good", map[string]any{"data": map[string]any{"a": "b"}})},
		{object: object("v1", "ConfigMap", "", "in-default", nil)},
		{object: object("v1", "ConfigMap", "default", "somebodys", map[string]any{"data": map[string]any{"a": "ours"}})}, // Flux applies by force
		{object: object("v1", "ConfigMap", "default", "bad", map[string]any{"date": map[string]any{"a": "b"}}), refused: "field not declared in schema"},
		{object: object("v1", "Service", "default", "bad", map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(99999)}}}}), refused: "must be between 1 and 65535"},
		{object: object("v1", "ConfigMap", "nowhere", "good", nil), later: "namespace"},
		{object: object("example.org/v1", "Gadget", "default", "small", nil), later: "Gadget.example.org"},
	} {
		refused, later, err := cluster.DryRun(t.Context(), test.object)
		if err != nil || !strings.Contains(refused, test.refused) || (refused == "") != (test.refused == "") || !strings.Contains(later, test.later) || (later == "") != (test.later == "") {
			t.Errorf("%s: refused %q, later %q, %v", test.object.ID(), refused, later, err)
		}
	}
	for _, name := range []string{"good", "in-default"} {
		_, err := server.Client().Resource(configMaps).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("the ConfigMap %s was made: %v", name, err)
		}
	}
}
