package run

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/base/redact/redacttest"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/timeline"
)

// The API's message is longer than what is kept of it, and around the place of the cut it names a secret of the layers.
func TestNotEvenHalfASecretGetsIntoTheEventLog(t *testing.T) {
	secret := redacttest.Token
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: http.StatusInternalServerError, Message: strings.Repeat("x", 500) + strings.Repeat(" "+secret, 10),
		})
	}))
	t.Cleanup(api.Close)
	key, err := x509.MarshalPKCS8PrivateKey(api.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}))
	described, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	handed, err := described.HandOver()
	if err != nil {
		t.Fatal(err)
	}
	events := filepath.Join(t.TempDir(), eventsFile)
	for name, value := range map[string]string{
		kube.HostVariable: api.URL, kube.CAVariable: certificate, kube.ClientCertVariable: certificate,
		kube.ClientKeyVariable: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
		config.Variable:        handed, VariableEvents: events,
		"PROXMOX_VE_API_TOKEN": secret,
	} {
		t.Setenv(name, value)
	}

	h, err := OpenHook()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if err := h.Wait(t.Context(), "engine-store", time.Second); err == nil || strings.Contains(err.Error(), secret[:4]) {
		t.Errorf("got %v", err)
	}
	data, err := os.ReadFile(events)
	if err != nil {
		t.Fatal(err)
	}
	if log := string(data); !strings.Contains(log, "clustersecretstores: ") || !strings.Contains(log, "xxx") || strings.Contains(log, secret[:4]) {
		t.Errorf("the event log holds a part of the secret, or not what was seen:\n%s", log)
	}
}

// The machines come up at the same time, and each notes its own steps.
func TestEventsThatCannotBeNotedAreToldWhoeverNotesThem(t *testing.T) {
	described, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	log, err := timeline.Open(filepath.Join(t.TempDir(), eventsFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	h := &Hook{description: described, notes: notes{log: log}}
	var machines sync.WaitGroup
	for range 8 {
		machines.Go(func() { h.append(timeline.Event{Kind: timeline.KindStep}) })
	}
	machines.Wait()
	if err := h.noted(); err == nil || strings.Count(err.Error(), "\n") != 7 {
		t.Errorf("of 8 events that were not noted is told: %v", err)
	}
}
