//go:build linux

package scenarios

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luthermonson/go-proxmox"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
)

const notRemoved = "not removed by itself, but with the machines that it was on:\n"

// TestDestroyOfAClusterThatIsHalfDeadAndOfOneThatIsSilent: first Flux and the webhooks of External Secrets do not run any more and a volume's driver
// lets go of nothing, while the API answers; then no API answers at all.
func TestDestroyOfAClusterThatIsHalfDeadAndOfOneThatIsSilent(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "none", "0")
	w.on()
	w.castle("create").succeeds()
	k := w.kubernetes(w.unsealed("kubeconfig"))
	tell.Fault(t, "kustomize-controller and the webhook of External Secrets do not run, and a volume's driver lets go of nothing")
	k.stops("flux-system", "kustomize-controller")
	k.stops("external-secrets", "external-secrets-webhook")
	k.service("shop")
	k.stores("shop")

	half := w.castle("destroy", "--confirm=sandbox").succeeds()
	said := half.stdout.String()
	for _, want := range []string{notRemoved, "\n  gitops: ", "\nsince\n  what Flux applied: kustomizations flux-system/apps, kustomizations flux-system/flux-system stay; nothing has gone for 45s: ",
		"Kustomization flux-system/flux-system (finalizers.fluxcd.io)", "\n  volumes: persistentvolumes shop stay; nothing has gone for 15s",
		"\n  layer engine failed: ", `failed calling webhook "validate.externalsecret.external-secrets.io"`,
		"looked up: the states of all 6 layers are empty, and Proxmox has no VM from 521 to 532 with the tag castle-sandbox"} {
		if !strings.Contains(said, want) {
			t.Errorf("destroy does not say %q:\n%s", want, said)
		}
	}
	for step, want := range map[[2]string]string{
		{"gitops", "what Flux applied"}: timeline.ResultFailed, {"gitops", "goes with its machines"}: timeline.ResultOK,
		{"networking", "load balancers"}: timeline.ResultOK, {"storage", "volumes"}: timeline.ResultFailed,
	} {
		if got := w.event(ends("step", step[0], step[1])).Result; got != want {
			t.Errorf("%s of %s: %q, not %q", step[1], step[0], got, want)
		}
	}
	t.Logf("the half-dead cluster was destroyed in %s", half.took.Round(time.Second))
	w.nothingIsLeft()

	w.castle("create").succeeds()
	tell.Fault(t, "all control planes are switched off")
	w.byHand(func(ctx context.Context, host *proxmox.Node) error {
		for _, node := range w.cluster.ControlPlanes() {
			machine, err := host.VirtualMachine(ctx, node.VMID)
			if err == nil {
				err = done(ctx)(machine.Stop(ctx))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	silent := w.castle("destroy", "--confirm=sandbox").succeeds()
	said = silent.stdout.String()
	for _, want := range []string{notRemoved, "\nsince\n  the API at https://192.168.77.210:6443 does not answer: ", "  engine: ", "\n  networking: ", "\n  storage: ", "\n  gitops: ", "helm_release"} {
		if !strings.Contains(said, want) {
			t.Errorf("destroy does not say %q:\n%s", want, said)
		}
	}
	t.Logf("the silent cluster was destroyed in %s", silent.took.Round(time.Second))
	for _, layer := range []string{"engine", "gitops"} {
		if copies, err := os.ReadDir(filepath.Join(w.state(), layer, "copies")); err != nil || len(copies) == 0 {
			t.Errorf("the state of %s has the copies %v, %v", layer, copies, err)
		}
	}
	w.nothingIsLeft()
}

// nothingIsLeft fails the test unless all states are empty and Proxmox has the template alone.
func (w *world) nothingIsLeft() {
	w.t.Helper()
	for _, layer := range w.status().Layers {
		if layer.Resources != 0 || layer.Problem != "" {
			w.t.Errorf("the state of layer %s holds %d resources: %s", layer.Layer, layer.Resources, layer.Problem)
		}
	}
	if vms := w.vms(); len(vms) != 1 {
		w.t.Errorf("Proxmox has %+v", vms)
	}
	w.hasTheTemplate()
}

// stops has a Deployment run no pod any more.
func (k kube) stops(namespace, name string) {
	k.world.t.Helper()
	deployments := k.typed.AppsV1().Deployments(namespace)
	k.must2(deployments.Patch(k.world.t.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{}))
	k.world.until(time.Minute, name+" has stopped", func() (string, bool) {
		now, err := deployments.Get(k.world.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return "", now.Status.ObservedGeneration == now.Generation && now.Status.Replicas == 0
	})
}

// stores runs a StatefulSet with a volume of its own, which nobody is there to take back.
func (k kube) stores(name string) {
	k.world.t.Helper()
	ctx, class := k.world.t.Context(), "manual"
	space := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	k.must2(k.typed.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: space, AccessModes: modes, StorageClassName: class, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "driver.nobody", VolumeHandle: name}},
	}}, metav1.CreateOptions{}))
	labels := map[string]string{"app": name}
	meta, spec := web(labels)
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	k.must2(k.typed.AppsV1().StatefulSets("default").Create(ctx, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.StatefulSetSpec{
		ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: meta, Spec: spec},
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: space}}}},
	}}, metav1.CreateOptions{}))
	k.world.until(time.Minute, "the volume is bound", func() (string, bool) {
		volume, err := k.typed.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return string(volume.Status.Phase), volume.Status.Phase == corev1.VolumeBound
	})
}
