package kubetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/base/porttest"
)

// Webhook is an admission webhook on loopback that is registered with the API server, and that serves when told to.
type Webhook struct {
	server  *Server
	address string
	refuse  func(object *unstructured.Unstructured) string
	running *http.Server
}

var webhookConfigurations = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}

// Register registers a validating webhook for the creation of resources, before it serves, as a chart does. refuse
// gives the reason to refuse an object, or nothing.
func (s *Server) Register(name string, resource schema.GroupVersionResource, refuse func(*unstructured.Unstructured) string) *Webhook {
	s.t.Helper()
	w := &Webhook{server: s, address: "127.0.0.1:" + strconv.Itoa(porttest.Free(s.t, "127.0.0.1")), refuse: refuse}
	s.Put(webhookConfigurations, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %s}
webhooks:
- name: %s
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: "https://%s/validate", caBundle: %s}
  rules:
  - {apiGroups: [%s], apiVersions: [%s], operations: [CREATE], resources: [%s]}
`, strings.ToLower(name), name, w.address, base64.StdEncoding.EncodeToString(s.CA()), resource.Group, resource.Version, resource.Resource))
	s.t.Cleanup(func() {
		w.Stop()
		s.Delete(webhookConfigurations, "", strings.ToLower(name))
	})
	return w
}

// Serve starts the webhook's server. It serves when this returns.
func (w *Webhook) Serve() {
	w.server.t.Helper()
	listener, err := net.Listen("tcp", w.address)
	if err != nil {
		w.server.t.Fatal(err)
	}
	w.running = &http.Server{Handler: http.HandlerFunc(w.review), TLSConfig: w.server.ServerTLS(), ReadHeaderTimeout: 10 * time.Second}
	go func(server *http.Server) { _ = server.ServeTLS(listener, "", "") }(w.running)
}

// Stop ends the server, and with it its connections.
func (w *Webhook) Stop() {
	if w.running != nil {
		_ = w.running.Close()
		w.running = nil
	}
}

func (w *Webhook) review(response http.ResponseWriter, request *http.Request) {
	var review struct {
		Request struct {
			UID    string         `json:"uid"`
			Object map[string]any `json:"object"`
		} `json:"request"`
	}
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	reason := w.refuse(&unstructured.Unstructured{Object: review.Request.Object})
	response.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(response).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1",
		"kind":       "AdmissionReview",
		"response": map[string]any{
			"uid": review.Request.UID, "allowed": reason == "",
			"status": map[string]any{"message": reason, "code": http.StatusForbidden},
		},
	})
}
