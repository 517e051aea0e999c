package gates

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/test/kubetest"
)

var shared kubetest.Shared

func TestMain(m *testing.M) {
	code := m.Run()
	shared.Close()
	os.Exit(code)
}

func connect(t testing.TB, server *kubetest.Server) *Kube {
	t.Helper()
	kube, err := KubeFromEnv(server.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// watching is a run in the background whose events can be looked at.
type watching struct {
	t      testing.TB
	mutex  sync.Mutex
	events []Event
	fresh  chan struct{}
	ended  chan error
}

func begin(t testing.TB, timeout time.Duration, conditions ...Condition) *watching {
	w := &watching{t: t, fresh: make(chan struct{}, 1), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() { w.ended <- run(ctx, "test", conditions, timeout, w.event) }()
	return w
}

func watchGate(t testing.TB, gate string, env Env, timeout time.Duration) *watching {
	t.Helper()
	conditions, err := Gate(gate, env)
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, timeout, conditions...)
}

func (w *watching) event(event Event) {
	w.mutex.Lock()
	w.events = append(w.events, event)
	w.mutex.Unlock()
	select {
	case w.fresh <- struct{}{}:
	default:
	}
}

// sees waits until some condition has reported the text.
func (w *watching) sees(text string) {
	w.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		w.mutex.Lock()
		var all []string
		for _, event := range w.events {
			if event.Phase == PhaseWaiting && strings.Contains(event.Seen, text) {
				w.mutex.Unlock()
				return
			}
			all = append(all, string(event.Phase)+" "+event.Condition+": "+event.Seen)
		}
		w.mutex.Unlock()
		select {
		case <-w.fresh:
		case err := <-w.ended:
			w.t.Fatalf("ended with %v before it saw %q:\n%s", err, text, strings.Join(all, "\n"))
		case <-deadline:
			w.t.Fatalf("never saw %q:\n%s", text, strings.Join(all, "\n"))
		}
	}
}

// staysShut fails when the wait ends within d, which is several times what it needs to notice something.
func (w *watching) staysShut(d time.Duration) {
	w.t.Helper()
	select {
	case err := <-w.ended:
		w.t.Fatalf("the gate ended with %v, and should hold", err)
	case <-time.After(d):
	}
}

// opens waits for the end of the wait, which must be a good one, and returns how long that took.
func (w *watching) opens() time.Duration {
	w.t.Helper()
	started := time.Now()
	select {
	case err := <-w.ended:
		if err != nil {
			w.t.Fatalf("the gate did not open: %v", err)
		}
	case <-time.After(30 * time.Second):
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.t.Fatalf("the gate did not open in 30s; the last event is %+v", w.events[len(w.events)-1])
	}
	return time.Since(started)
}

// fails waits for the end of the wait, which must be a bad one.
func (w *watching) fails() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		if err == nil {
			w.t.Fatal("the gate opened")
		}
		return err
	case <-time.After(30 * time.Second):
		w.t.Fatal("the gate did not fail in 30s")
		return nil
	}
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
	server.Put(endpointSlices, strings.NewReplacer("NAMESPACE", namespace, "SERVICE", service, "READY", ready).Replace(slice))
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

	gate.sees("0 of 2 ready; ipaddresspools.metallb.io: does not exist yet")
	gate.sees("no EndpointSlice exists yet")
	server.InstallCRDs("metallb", "ipaddresspools", "l2advertisements")
	putSlice(server, "metallb-system", "metallb-webhook-service", "false")
	gate.sees("0 of 1 endpoints ready")

	// webhook-lies: the endpoint is ready; first the webhook is not even registered, then it does not serve.
	putSlice(server, "metallb-system", "metallb-webhook-service", "true")
	gate.sees("1 of 1 endpoints ready, webhook ipaddresspoolvalidationwebhook.metallb.io is not called yet")
	webhook := metallb(server)
	gate.sees("connect: connection refused")
	gate.staysShut(500 * time.Millisecond)

	webhook.Serve()
	if took := gate.opens(); took > time.Second {
		t.Errorf("the gate opened %s after the webhook served", took)
	}
}

func TestAnEndpointThatGoesAwayClosesTheGateAgain(t *testing.T) {
	server := shared.Server(t)
	server.InstallCRDs("metallb", "ipaddresspools", "l2advertisements")
	putSlice(server, "metallb-system", "gone", "true")
	webhook := metallb(server)
	gate := begin(t, time.Minute, row{"webhook", Webhook{connect(t, server), Object{"metallb-system", "gone"}, metallbProbes("metallb-system")}, ""})
	gate.sees("connect: connection refused")
	putSlice(server, "metallb-system", "gone", "false")
	gate.sees("0 of 1 endpoints ready")
	webhook.Serve()
	gate.staysShut(500 * time.Millisecond)
	putSlice(server, "metallb-system", "gone", "true")
	gate.opens()
}

func TestATimeoutSaysWhatWasSeenAndWhatToLookAt(t *testing.T) {
	server := shared.Server(t)
	server.InstallCRDs("metallb", "ipaddresspools", "l2advertisements")
	putSlice(server, "metallb-system", "metallb-webhook-service", "true")
	metallb(server)
	err := watchGate(t, "networking-webhook", Env{Kube: connect(t, server)}, 1500*time.Millisecond).fails()
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
