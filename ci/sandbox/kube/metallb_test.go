//go:build linux

package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"tazlab.net/castle/ci/sandbox/profile"
)

const metalLB = "metallb-system"

var poolKind = schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: "ipaddresspools"}

func pool(name string, addresses ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool",
		"metadata": map[string]any{"name": name, "namespace": metalLB},
		"spec":     map[string]any{"addresses": addresses},
	}}
}

// apply creates the objects of a YAML text.
func (w *world) apply(text string) {
	w.t.Helper()
	admin := w.Admin()
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		w.t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kubernetes.NewForConfigOrDie(admin).Discovery()))
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			w.t.Fatal(err)
		}
		if len(object.Object) == 0 {
			continue
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		// The API serves a kind some moments after its definition was created.
		for deadline := time.Now().Add(time.Minute); meta.IsNoMatchError(err) && time.Now().Before(deadline); {
			time.Sleep(50 * time.Millisecond)
			mapper.Reset()
			mapping, err = mapper.RESTMapping(kind.GroupKind(), kind.Version)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		var into dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			into = client.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		if _, err := into.Create(w.t.Context(), object, metav1.CreateOptions{}); err != nil {
			w.t.Fatalf("create %s %s: %v", kind.Kind, object.GetName(), err)
		}
	}
}

// installMetalLB installs the controller, whose program it returns.
func installMetalLB(w *world) {
	w.t.Helper()
	controller := w.options.Binaries.Images[ImageMetalLBController]
	crds, err := os.ReadFile(filepath.Join(filepath.Dir(controller), "charts/metallb/charts/crds/templates/crds.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(strings.ReplaceAll(string(crds), "{{ .Release.Namespace }}", metalLB))
	manifests, err := os.ReadFile("testdata/metallb.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(string(manifests))
}

func metalLBWorld(t *testing.T, p profile.Profile) *world {
	return newWorld(t, map[string]string{ImageMetalLBController: programs(t, "metallb")["controller"]}, p)
}

func TestTheRealMetalLBServesItsWebhookThroughItsService(t *testing.T) {
	w := metalLBWorld(t, quick(t, nil))
	client := w.start()
	installMetalLB(w)
	w.available(client, metalLB, "controller", time.Minute)
	pools := dynamic.NewForConfigOrDie(w.Admin()).Resource(poolKind).Namespace(metalLB)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	w.eventually(30*time.Second, "the webhook accepts a pool", func(ctx context.Context) error {
		_, err := pools.Create(ctx, pool("first", "192.168.77.220-192.168.77.222"), dryRun)
		return err
	})
	if _, err := pools.Create(t.Context(), pool("first", "no address"), dryRun); err == nil || !strings.Contains(err.Error(), "ipaddresspoolvalidationwebhook.metallb.io") {
		t.Errorf("a pool that only the webhook can refuse: %v", err)
	}

	if _, err := pools.Create(t.Context(), pool("first", "192.168.77.220-192.168.77.222"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.eventually(20*time.Second, "the Service has an address of the pool", func(ctx context.Context) error {
		service, err := client.CoreV1().Services("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if ingress := service.Status.LoadBalancer.Ingress; len(ingress) != 1 || !strings.HasPrefix(ingress[0].IP, "192.168.77.22") {
			return fmt.Errorf("ingress %v", ingress)
		}
		return nil
	})
	addresses(t, client)

	program := w.options.Binaries.Images[ImageMetalLBController]
	before := processesOf(t, program)
	if len(before) != 1 {
		t.Fatalf("%d processes run the controller", len(before))
	}
	if err := client.CoreV1().Pods(metalLB).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(10*time.Second, "another process runs the controller", func(context.Context) error {
		if now := processesOf(t, program); len(now) != 1 || now[0] == before[0] {
			return fmt.Errorf("processes %v, before %v", now, before)
		}
		return nil
	})
	w.available(client, metalLB, "controller", 20*time.Second)

	w.NodeDown(wk1.Name)
	if left := processesOf(t, program); len(left) != 0 {
		t.Errorf("processes %v run on a node without power", left)
	}
}

// served collects when webhooks were said to answer.
type served struct {
	mu    sync.Mutex
	times []time.Time
}

func (s *served) add(_, _ string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, at)
}

func TestAWebhookThatLiesRefusesAlthoughItsEndpointIsReady(t *testing.T) {
	w := metalLBWorld(t, quick(t, profile.Faults{profile.WebhookLies: "3s"}))
	client := w.start()
	installMetalLB(w)
	w.available(client, metalLB, "controller", time.Minute)
	ready := time.Now()
	pools := dynamic.NewForConfigOrDie(w.Admin()).Resource(poolKind).Namespace(metalLB)
	_, err := pools.Create(t.Context(), pool("first", "192.168.77.220/30"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil || !strings.Contains(err.Error(), syscall.ECONNREFUSED.Error()) {
		t.Fatalf("the webhook's answer right after its endpoint is ready: %v", err)
	}
	w.eventually(20*time.Second, "the webhook answers", func(ctx context.Context) error {
		_, err := pools.Create(ctx, pool("first", "192.168.77.220/30"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	if took := time.Since(ready); took < 2500*time.Millisecond {
		t.Errorf("it refused for %s, want 3s", took)
	}
}

func TestALateWebhookIsNotReady(t *testing.T) {
	w := metalLBWorld(t, quick(t, profile.Faults{profile.WebhookLate: "3s"}))
	s := &served{}
	w.options.WebhookServes = s.add
	w.power()
	client := w.start()
	installMetalLB(w)
	var running time.Time
	w.eventually(time.Minute, "the controller's process runs", func(context.Context) error {
		if len(processesOf(t, w.options.Binaries.Images[ImageMetalLBController])) == 0 {
			return errors.New("it does not")
		}
		running = time.Now()
		return nil
	})
	if took := w.available(client, metalLB, "controller", time.Minute); took < 2*time.Second {
		t.Errorf("its pod was ready after %s, want 3s", took)
	}
	w.eventually(5*time.Second, "it was said to answer", func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.times) != 1 || s.times[0].Before(running.Add(2*time.Second)) {
			return fmt.Errorf("at %v", s.times)
		}
		return nil
	})
}
