package teardown

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/test/kubetest"
)

var shared kubetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

var (
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	definitions  = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

func open(t *testing.T) (*kubetest.Server, *Cluster) {
	t.Helper()
	server := shared.Server(t)
	client, err := kube.FromEnv(server.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := Of(client)
	if err != nil {
		t.Fatal(err)
	}
	return server, cluster
}

// define serves a kind whose objects may hold anything.
func define(server *kubetest.Server, group, version, kind, plural string) {
	server.Put(definitions, `
metadata: {name: `+plural+"."+group+`}
spec:
  group: `+group+`
  scope: Namespaced
  names: {kind: `+kind+`, plural: `+plural+`, singular: `+strings.ToLower(kind)+`}
  versions: [{name: `+version+`, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`)
}

// eventually waits for what comes by itself.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// put makes an object once its kind is served.
func put(t *testing.T, server *kubetest.Server, kind schema.GroupVersionResource, manifest string) {
	t.Helper()
	eventually(t, kind.Resource+" are served", func() bool {
		_, err := server.Client().Resource(kind).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	server.Put(kind, manifest)
}

func there(t *testing.T, server *kubetest.Server, kind schema.GroupVersionResource, namespace, name string) bool {
	t.Helper()
	_, err := server.Client().Resource(kind).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// letsGo takes an object's finalizers away as soon as it was told to go, as its controller does.
func letsGo(t *testing.T, server *kubetest.Server, kind schema.GroupVersionResource, namespace, name string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			object, err := server.Client().Resource(kind).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil && object.GetDeletionTimestamp() != nil {
				_, _ = server.Client().Resource(kind).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func TestWhatHoldsIsNamedOnceNothingGoesAnyMore(t *testing.T) {
	server, cluster := open(t)
	if did, err := cluster.RemoveFlux(t.Context(), func(string) {}); did || err != nil {
		t.Errorf("where Flux is not installed: %t, %v", did, err)
	}
	define(server, "kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
	define(server, "helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases")
	put(t, server, flux.Kustomizations, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: default, finalizers: [finalizers.fluxcd.io]}")
	put(t, server, flux.HelmReleases, "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop, namespace: default}")

	const patience = 4 * time.Second
	began := time.Now()
	err := cluster.While(t.Context(), patience, func(ctx context.Context) error {
		_, err := cluster.RemoveFlux(ctx, func(string) {})
		return err
	})
	var stalled *Stalled
	if !errors.As(err, &stalled) || len(stalled.Held) != 1 || stalled.Held[0] != "Kustomization default/apps (finalizers.fluxcd.io)" {
		t.Fatalf("the error is %v", err)
	}
	if took := time.Since(began); took < patience {
		t.Errorf("it was given up after %s", took)
	}
	if !there(t, server, flux.HelmReleases, "default", "shop") {
		t.Error("a release went before the Kustomization that would make it again")
	}

	stop := letsGo(t, server, flux.Kustomizations, "default", "apps")
	defer stop()
	did, err := false, error(nil)
	err = cluster.While(t.Context(), time.Minute, func(ctx context.Context) (err error) {
		did, err = cluster.RemoveFlux(ctx, func(string) {})
		return err
	})
	if !did || err != nil || there(t, server, flux.Kustomizations, "default", "apps") || there(t, server, flux.HelmReleases, "default", "shop") {
		t.Errorf("removed: %t, %v", did, err)
	}
}

// refusing is a way to an API that is refused after some requests.
type refusing struct {
	http.RoundTripper
	left atomic.Int64
}

func (r *refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.left.Add(-1) < 0 {
		return nil, syscall.ECONNREFUSED
	}
	return r.RoundTripper.RoundTrip(request)
}

// A low count would be a mark that nothing gets below, and what still goes would seem to hang.
func TestAnAPIThatGoesAwayWhileItsObjectsAreCountedGivesNoCount(t *testing.T) {
	_, cluster := open(t)
	all, err := cluster.look(t.Context())
	if err != nil || all.objects == 0 {
		t.Fatalf("%d objects, %v", all.objects, err)
	}
	config := cluster.client.Config()
	config.Wrap(func(way http.RoundTripper) http.RoundTripper {
		half := &refusing{RoundTripper: way}
		half.left.Store(10)
		return half
	})
	if cluster.metadata, err = metadata.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if some, err := cluster.look(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%d of %d objects were counted, %v", some.objects, all.objects, err)
	}
}

func TestWhatOutlivesTheClusterIsRemoved(t *testing.T) {
	server, cluster := open(t)
	server.Put(kube.Services, "metadata: {name: shop, namespace: default}\nspec: {type: LoadBalancer, ports: [{port: 80}]}")
	server.Put(kube.Services, "metadata: {name: inside, namespace: default}\nspec: {ports: [{port: 80}]}")
	if did, err := cluster.RemoveLoadBalancers(t.Context(), func(string) {}); !did || err != nil || there(t, server, kube.Services, "default", "shop") || !there(t, server, kube.Services, "default", "inside") {
		t.Errorf("load balancers: %t, %v", did, err)
	}
	if did, err := cluster.RemoveLoadBalancers(t.Context(), func(string) {}); did || err != nil {
		t.Errorf("no load balancers: %t, %v", did, err)
	}

	if did, err := cluster.RemoveVolumes(t.Context(), func(string) {}); did || err != nil {
		t.Errorf("no volumes: %t, %v", did, err)
	}
	set := server.Put(statefulSets, `
metadata: {name: db, namespace: default}
spec: {serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: i}]}}}
`)
	server.Put(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "metadata: {name: default, namespace: default}")
	server.Put(kube.Pods, `
metadata:
  name: db-0
  namespace: default
  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: `+string(set.GetUID())+`, controller: true}]
spec:
  automountServiceAccountToken: false
  containers: [{name: c, image: i}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: db}}]
`)
	for name, policy := range map[string]string{"db": "Delete", "archive": "Retain"} {
		server.Put(kube.Volumes, `
metadata: {name: `+name+`}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: `+policy+`
  csi: {driver: d, volumeHandle: `+name+`}
status: {phase: Bound}
`)
		server.Put(kube.Claims, `
metadata: {name: `+name+`, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: `+name+`}
`)
	}
	stopClaim := letsGo(t, server, kube.Claims, "default", "db")
	defer stopClaim()
	err := cluster.While(t.Context(), 5*time.Second, func(ctx context.Context) error {
		_, err := cluster.RemoveVolumes(ctx, func(string) {})
		return err
	})
	// Nobody is there who removes a volume without its claim.
	if err == nil || !there(t, server, kube.Volumes, "", "db") {
		t.Errorf("a volume that is still there was not waited for: %v", err)
	}
	if there(t, server, kube.Claims, "default", "db") || there(t, server, statefulSets, "default", "db") {
		t.Error("the claim, or who would make it again, is still there")
	}
	archive, err := server.Client().Resource(kube.Claims).Namespace("default").Get(t.Context(), "archive", metav1.GetOptions{})
	if err != nil || archive.GetDeletionTimestamp() != nil || !there(t, server, kube.Volumes, "", "archive") {
		t.Error("a volume that is to be retained was removed")
	}

	// Without its claim, since an earlier destroy was interrupted, a volume is waited for as well while its driver takes it back.
	server.Put(kube.Volumes, `
metadata: {name: released, annotations: {pv.kubernetes.io/provisioned-by: d}}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Delete
  csi: {driver: d, volumeHandle: released}
status: {phase: Released}
`)
	stopVolume := letsGo(t, server, kube.Volumes, "", "db")
	defer stopVolume()
	if err := server.Client().Resource(kube.Volumes).Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the volume is gone", func() bool { return !there(t, server, kube.Volumes, "", "db") })
	told := ""
	err = cluster.While(t.Context(), 4*time.Second, func(ctx context.Context) error {
		_, err := cluster.RemoveVolumes(ctx, func(seen string) { told = seen })
		return err
	})
	if err == nil || told != "persistentvolumes released" {
		t.Errorf("waited for %q: %v", told, err)
	}
}

func TestLonghornsVolumesAreNamedByTheirClaims(t *testing.T) {
	server, cluster := open(t)
	const spec = `, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, `
	server.Put(kube.Volumes, `{metadata: {name: pvc-of-longhorn-1}`+spec+`csi: {driver: driver.longhorn.io, volumeHandle: a}, claimRef: {namespace: web, name: data}}}`)
	server.Put(kube.Volumes, `{metadata: {name: pvc-of-longhorn-2}`+spec+`csi: {driver: driver.longhorn.io, volumeHandle: b}}}`)
	server.Put(kube.Volumes, `{metadata: {name: pvc-of-another}`+spec+`csi: {driver: nfs.csi.k8s.io, volumeHandle: c}}}`)
	names, err := cluster.LonghornVolumes(t.Context())
	if err != nil || strings.Join(names, " ") != "pvc-of-longhorn-2 web/data" {
		t.Errorf("%v, %v", names, err)
	}
}

func TestLonghornIsLetGoOnlyOnTheWayOut(t *testing.T) {
	server, cluster := open(t)
	if did, err := cluster.LetLonghornGo(t.Context(), func(string) {}); did || err != nil {
		t.Errorf("without Longhorn: %t, %v", did, err)
	}
	define(server, "longhorn.io", "v1beta2", "Setting", "settings")
	server.Put(kube.Namespaces, "metadata: {name: longhorn-system}")
	put(t, server, longhornSettings, "apiVersion: longhorn.io/v1beta2\nkind: Setting\nmetadata: {name: deleting-confirmation-flag, namespace: longhorn-system}\nvalue: \"false\"")
	for _, want := range []bool{true, false} {
		if did, err := cluster.LetLonghornGo(t.Context(), func(string) {}); did != want || err != nil {
			t.Errorf("the flag was set: %t, %v", did, err)
		}
	}
	flag, err := server.Client().Resource(longhornSettings).Namespace("longhorn-system").Get(t.Context(), "deleting-confirmation-flag", metav1.GetOptions{})
	if err != nil || flag.Object["value"] != "true" {
		t.Errorf("the flag is %v, %v", flag.Object["value"], err)
	}
}
