package kube

import (
	"os"
	"testing"

	"tazlab.net/castle/ci/test/kubetest"
)

var shared kubetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func connect(t testing.TB, server *kubetest.Server) *Client {
	t.Helper()
	client, err := FromEnv(server.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
