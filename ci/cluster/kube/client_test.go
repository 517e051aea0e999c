package kube

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestTheEnvironmentsGapsAreNamedAtOnce(t *testing.T) {
	_, err := FromEnv(func(name string) string { return map[string]string{"KUBE_HOST": "https://192.0.2.1:6443"}[name] })
	if err == nil || !strings.Contains(err.Error(), "KUBE_CLUSTER_CA_CERT_DATA, KUBE_CLIENT_CERT_DATA, KUBE_CLIENT_KEY_DATA not set") {
		t.Errorf("got %v", err)
	}
}

func TestACutAnswerIsReturnedAndNotLogged(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "{")
	}))
	t.Cleanup(server.Close)
	client, err := newClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	log := standardError(t, func() { _, err = client.Resource(Nodes).List(t.Context(), metav1.ListOptions{}) })
	if err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("got %v", err)
	}
	if log != "" {
		t.Errorf("logged besides: %s", log)
	}
}

// standardError is what f writes there.
func standardError(t *testing.T, f func()) string {
	t.Helper()
	file, err := os.Create(t.TempDir() + "/stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	before := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = before }()
	f()
	written, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}
