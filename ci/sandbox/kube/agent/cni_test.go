//go:build linux

package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A kubelet is not Ready, and runs no pod that needs an address, before something has told its runtime how to give one.
func TestANodeHasANetworkOnceAPodHasBroughtIt(t *testing.T) {
	here, elsewhere := &node{Node: Node{Name: "a", PodCNI: true}}, &node{Node: Node{Name: "b", PodCNI: true}}
	brings := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: true, Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/cni/net.d"}}}}}}
		change(pod)
		return pod
	}
	plain := func(*corev1.Pod) {}
	for name, c := range map[string]struct {
		worker *worker
		want   bool
	}{
		"one that does":               {&worker{node: here, pod: brings(plain), ready: time.Now()}, true},
		"one that is not ready":       {&worker{node: here, pod: brings(plain)}, false},
		"one on another node":         {&worker{node: elsewhere, pod: brings(plain), ready: time.Now()}, false},
		"one that needs one itself":   {&worker{node: here, pod: brings(func(pod *corev1.Pod) { pod.Spec.HostNetwork = false }), ready: time.Now()}, false},
		"one that writes nothing":     {&worker{node: here, pod: brings(func(pod *corev1.Pod) { pod.Spec.Volumes = nil }), ready: time.Now()}, false},
		"one that writes other files": {&worker{node: here, pod: brings(func(pod *corev1.Pod) { pod.Spec.Volumes[0].HostPath.Path = "/var/log" }), ready: time.Now()}, false},
	} {
		a := &Agent{workers: map[types.UID]*worker{"x": c.worker}}
		if got := a.hasNetwork(here); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	a := &Agent{workers: map[types.UID]*worker{}}
	if !a.hasNetwork(&node{}) {
		t.Error("Talos's own network is none")
	}
	w := &worker{agent: a, node: here, pod: brings(func(pod *corev1.Pod) { pod.Spec.HostNetwork = false })}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := w.prepare(ctx); !errors.Is(err, errNoNetwork) {
		t.Errorf("a pod without a network: %v", err)
	}
}
