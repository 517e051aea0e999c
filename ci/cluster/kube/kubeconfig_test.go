package kube

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/test/kubetest"
)

// kubeconfig is one for the server, its user as given.
func kubeconfig(server *kubetest.Server, user string) []byte {
	return fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: s, user: u}}],
		clusters: [{name: s, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: u, user: {%s}}]}`,
		server.Host, base64.StdEncoding.EncodeToString(server.CA()), user)
}

func TestAKubeconfigConnectsWithoutAFile(t *testing.T) {
	server := shared.Server(t)
	cert, key := server.Certificate("somebody", "system:masters")
	user := fmt.Sprintf("client-certificate-data: %s, client-key-data: %s", base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key))
	client, err := FromKubeconfig(kubeconfig(server, user))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(Nodes).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func TestAKubeconfigThatNeedsAnotherMachineIsRefused(t *testing.T) {
	server := shared.Server(t)
	for user, want := range map[string]string{
		"exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}":       "from the program aws",
		"client-certificate: /home/me/crt, client-key: /home/me/key":              "names the file /home/me/crt",
		"tokenFile: /home/me/token":                                               "names the file /home/me/token",
		"auth-provider: {name: gcp}":                                              "from the provider gcp",
		"token: canary-31ab, client-certificate-data: bm90aGluZw==, nonsense: [{": "cannot be read",
	} {
		_, err := FromKubeconfig(kubeconfig(server, user))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want %q", user, err, want)
		}
	}
	if _, err := FromKubeconfig([]byte("{apiVersion: v1, kind: Config}")); err == nil || !strings.Contains(err.Error(), "current context") {
		t.Errorf("without a context: %v", err)
	}
}

func TestAKubeconfigsTokenIsNotShownAndItsServerIs(t *testing.T) {
	const token = "canary-of-a-token"
	_, err := FromKubeconfig([]byte(`
apiVersion: v1
kind: Config
current-context: blue
contexts: [{name: blue, context: {cluster: blue, user: admin}}]
clusters: [{name: blue, cluster: {server: "https://kubernetes.example.org:6443"}}]
users: [{name: admin, user: {token: ` + token + `}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := redact.Text("https://kubernetes.example.org:6443 refused " + token); got != "https://kubernetes.example.org:6443 refused "+redact.Mark {
		t.Errorf("got %s", got)
	}
}
