package gates

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/test/kubetest"
	"tazlab.net/castle/ci/test/waittest"
)

var shared kubetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func connect(t testing.TB, server *kubetest.Server) *kube.Client {
	t.Helper()
	client, err := kube.FromEnv(server.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// begin has conditions waited for in the background.
func begin(t testing.TB, timeout time.Duration, conditions ...Condition) *waittest.Wait {
	return waittest.Begin(t, func(ctx context.Context, saw func(string)) error {
		return Wait(ctx, "test", conditions, Options{Timeout: timeout, Events: func(event Event) {
			if event.Phase == PhaseWaiting {
				saw(event.Seen)
			}
		}})
	})
}

func watchGate(t testing.TB, gate string, env Env, timeout time.Duration) *waittest.Wait {
	t.Helper()
	conditions, err := Conditions(gate, env)
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, timeout, conditions...)
}

const slice = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: SERVICE-1, namespace: NAMESPACE, labels: {kubernetes.io/service-name: SERVICE}}
addressType: IPv4
ports: [{name: webhook, port: 9443, protocol: TCP}]
endpoints: [{addresses: [10.244.0.7], conditions: {ready: READY}}]
`

func putSlice(server *kubetest.Server, namespace, service, ready string) {
	server.Put(kube.EndpointSlices, strings.NewReplacer("NAMESPACE", namespace, "SERVICE", service, "READY", ready).Replace(slice))
}

// metallb stands in for MetalLB's webhook: it knows what an address is.
func metallb(server *kubetest.Server) *kubetest.Webhook {
	return server.Register("ipaddresspoolvalidationwebhook.metallb.io", addressPools, func(pool *unstructured.Unstructured) string {
		addresses, _, _ := unstructured.NestedStringSlice(pool.Object, "spec", "addresses")
		for _, address := range addresses {
			if !strings.Contains(address, ".") {
				return "invalid CIDR " + address
			}
		}
		return ""
	})
}

func TestTheNetworkingGateHoldsUntilTheWebhookIsCalledThrough(t *testing.T) {
	server := kubetest.Start(t)
	gate := watchGate(t, "networking-webhook", Env{Kube: connect(t, server)}, time.Minute)

	gate.Sees("0 of 2 ready; ipaddresspools.metallb.io: does not exist yet")
	gate.Sees("no EndpointSlice exists yet")
	server.InstallCRDs("metallb", "ipaddresspools", "l2advertisements")
	putSlice(server, "metallb-system", "metallb-webhook-service", "false")
	gate.Sees("0 of 1 endpoints ready")

	// webhook-lies: the endpoint is ready; first the webhook is not even registered, then it does not serve.
	putSlice(server, "metallb-system", "metallb-webhook-service", "true")
	gate.Sees("1 of 1 endpoints ready, webhook ipaddresspoolvalidationwebhook.metallb.io is not called yet")
	webhook := metallb(server)
	gate.Sees("connect: connection refused")
	gate.StaysShut(500 * time.Millisecond)

	webhook.Serve()
	if took := gate.Opens(); took > 10*time.Second {
		t.Errorf("the gate opened %s after the webhook served", took)
	}
}

func TestAnEndpointThatGoesAwayClosesTheGateAgain(t *testing.T) {
	server := shared.Server(t)
	server.InstallCRDs("metallb", "ipaddresspools", "l2advertisements")
	putSlice(server, "metallb-system", "gone", "true")
	hook := metallb(server)
	gate := begin(t, time.Minute, Condition{"webhook", webhook{connect(t, server), kube.Object{Namespace: "metallb-system", Name: "gone"}, metallbProbes("metallb-system")}, ""})
	gate.Sees("connect: connection refused")
	putSlice(server, "metallb-system", "gone", "false")
	gate.Sees("0 of 1 endpoints ready")
	hook.Serve()
	gate.StaysShut(500 * time.Millisecond)
	putSlice(server, "metallb-system", "gone", "true")
	gate.Opens()
}

func TestATimeoutSaysWhatWasSeenAndWhatToLookAt(t *testing.T) {
	server := shared.Server(t)
	server.InstallCRDs("metallb", "ipaddresspools", "l2advertisements")
	putSlice(server, "metallb-system", "metallb-webhook-service", "true")
	metallb(server)
	err := watchGate(t, "networking-webhook", Env{Kube: connect(t, server)}, 1500*time.Millisecond).Fails()
	var timeout *Timeout
	if !errors.As(err, &timeout) {
		t.Fatalf("the error is %T %v, want a *Timeout", err, err)
	}
	for _, part := range []string{
		"waiting for webhook metallb-webhook-service in metallb-system: 1 of 1 endpoints ready, last error dial tcp 127.0.0.1:",
		"connect: connection refused, 1.5s",
		"; look at: kubectl -n metallb-system get pods,endpointslices",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q:\n%v", part, err)
		}
	}
}
