package kube

import (
	"strings"
	"testing"
)

func TestTheEnvironmentsGapsAreNamedAtOnce(t *testing.T) {
	_, err := FromEnv(func(name string) string { return map[string]string{"KUBE_HOST": "https://192.0.2.1:6443"}[name] })
	if err == nil || !strings.Contains(err.Error(), "KUBE_CLUSTER_CA_CERT_DATA, KUBE_CLIENT_CERT_DATA, KUBE_CLIENT_KEY_DATA not set") {
		t.Errorf("got %v", err)
	}
}
