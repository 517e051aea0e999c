package gates

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// BenchmarkGateLatency measures from the moment that a webhook serves to the gate open, with the webhook's endpoint
// ready long before: p50-ms and p95-ms. Use -benchtime=50x for a steady p95.
func BenchmarkGateLatency(b *testing.B) {
	server := shared.Server(b)
	server.InstallCRDs("metallb", "ipaddresspools", "l2advertisements")
	putSlice(server, "metallb-system", "metallb-webhook-service", "true")
	webhook := metallb(server)
	env := Env{Kube: connect(b, server)}
	var samples []time.Duration
	for b.Loop() {
		gate := watchGate(b, "networking-webhook", env, time.Minute)
		gate.Sees("connect: connection refused")
		time.Sleep(rand.N(3 * askEvery)) // so that the moment is not in step with the tries
		webhook.Serve()
		samples = append(samples, gate.Opens())
		webhook.Stop()
	}
	slices.Sort(samples)
	percentile := func(p int) float64 {
		return float64(samples[(len(samples)-1)*p/100].Microseconds()) / 1000
	}
	b.ReportMetric(percentile(50), "p50-ms")
	b.ReportMetric(percentile(95), "p95-ms")
	b.ReportMetric(0, "ns/op")
}
