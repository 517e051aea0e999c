package longhorn

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

const ns = "longhorn-system"

// cluster is an API without controllers or kubelets: what they would write, the test writes.
type cluster struct {
	*Longhorn
	Client
	t *testing.T
}

func newCluster(t *testing.T, objects ...runtime.Object) cluster {
	t.Helper()
	client := Client{
		Typed:   fake.NewClientset(objects...),
		Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{settings: "SettingList"}),
	}
	c := cluster{New(slog.New(slog.DiscardHandler)), client, t}
	factory := informers.NewSharedInformerFactory(client.Typed, 0)
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Connect(ctx, client, factory); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	return c
}

// soon waits for what the simulator does.
func (c cluster) soon(what string, is func() bool) {
	c.t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("never: %s", what)
		}
	}
}

// still looks for a while whether the simulator leaves something.
func (c cluster) still(what string, is func() bool) {
	c.t.Helper()
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if !is() {
			c.t.Fatalf("not any more: %s", what)
		}
	}
}

func pod(app, node string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: app + "-" + node, Namespace: ns, UID: types.UID(app + node), Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: app, Args: args}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func (c cluster) runs(p *corev1.Pod) {
	c.t.Helper()
	if _, err := c.Typed.CoreV1().Pods(ns).Create(c.t.Context(), p, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

var managerArgs = []string{"daemon", "--engine-image", "engine:1", "--instance-manager-image", "instances:1"}

func installed() []runtime.Object {
	return []runtime.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: classConfigMap, Namespace: ns}, Data: map[string]string{
			classKey: "kind: StorageClass\napiVersion: storage.k8s.io/v1\nmetadata: {name: longhorn}\nprovisioner: driver.longhorn.io\n"}},
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: manager, Namespace: ns}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1}},
	}
}

func (c cluster) hasClass() bool {
	_, err := c.Typed.StorageV1().StorageClasses().Get(c.t.Context(), className, metav1.GetOptions{})
	return err == nil
}

func TestAManagerThatRunsMakesTheClassTheFlagAndWhatVolumesNeed(t *testing.T) {
	c := newCluster(t, installed()...)
	late := pod(manager, "a", managerArgs...)
	late.Status.Conditions[0].Status = corev1.ConditionFalse
	c.runs(late)
	c.still("no StorageClass", func() bool { return !c.hasClass() })
	late.Status.Conditions[0].Status = corev1.ConditionTrue
	if _, err := c.Typed.CoreV1().Pods(ns).UpdateStatus(t.Context(), late, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.soon("a StorageClass", c.hasClass)
	c.soon("the flag", func() bool {
		setting, err := c.Dynamic.Resource(settings).Namespace(ns).Get(t.Context(), flag, metav1.GetOptions{})
		if err != nil {
			return false
		}
		value, _, _ := unstructured.NestedString(setting.Object, "value")
		return value == "false"
	})
	c.soon("an instance manager", func() bool {
		p, err := c.Typed.CoreV1().Pods(ns).Get(t.Context(), "instance-manager-a", metav1.GetOptions{})
		return err == nil && p.Spec.NodeName == "a" && p.Spec.Containers[0].Image == "instances:1"
	})
	c.soon("the engine's image", func() bool {
		sets, err := c.Typed.AppsV1().DaemonSets(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=engine-image"})
		return err == nil && len(sets.Items) == 1 && sets.Items[0].Spec.Template.Spec.Containers[0].Image == "engine:1"
	})
}

func TestTheDriverIsDeployedOnceEveryManagerRuns(t *testing.T) {
	c := newCluster(t, installed()...)
	c.runs(pod(manager, "a", managerArgs...))
	c.runs(pod(deployer, "a", "deploy-driver", "--manager-image", "manager:1"))
	there := func() bool {
		_, err := c.Typed.AppsV1().DaemonSets(ns).Get(t.Context(), plugin, metav1.GetOptions{})
		return err == nil
	}
	c.still("no driver", func() bool { return !there() })
	set, err := c.Typed.AppsV1().DaemonSets(ns).Get(t.Context(), manager, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set.Status.NumberReady = 1
	if _, err := c.Typed.AppsV1().DaemonSets(ns).UpdateStatus(t.Context(), set, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.soon("the driver", there)
	for _, sidecar := range sidecars {
		if _, err := c.Typed.AppsV1().Deployments(ns).Get(t.Context(), sidecar.app, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Typed.StorageV1().CSIDrivers().Get(t.Context(), Driver, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestAVolumeIsMadeForAClaimAndRemovedWhenNobodyHasIt(t *testing.T) {
	class := className
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "web", UID: "u"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}}}}
	c := newCluster(t, append(installed(), claim)...)
	c.runs(pod(manager, "a", managerArgs...))
	c.soon("a StorageClass", c.hasClass)
	get := func() (*corev1.PersistentVolume, error) {
		return c.Typed.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-u", metav1.GetOptions{})
	}
	c.still("no volume", func() bool { _, err := get(); return apierrors.IsNotFound(err) })
	c.runs(pod(provisioner, "a"))
	c.soon("a volume", func() bool { _, err := get(); return err == nil })
	volume, err := get()
	if err != nil {
		t.Fatal(err)
	}
	if size := volume.Spec.Capacity[corev1.ResourceStorage]; size.String() != "10Mi" || volume.Spec.CSI.Driver != Driver || volume.Spec.ClaimRef.UID != "u" {
		t.Errorf("the volume is %+v", volume.Spec)
	}
	held := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: storagev1.VolumeAttachmentSpec{Attacher: Driver, NodeName: "a",
		Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume.Name}}}
	if _, err := c.Typed.StorageV1().VolumeAttachments().Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Typed.CoreV1().PersistentVolumeClaims("web").Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	volume.Status.Phase = corev1.VolumeReleased
	if _, err := c.Typed.CoreV1().PersistentVolumes().UpdateStatus(t.Context(), volume, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.still("an attached volume stays", func() bool { _, err := get(); return err == nil })
	if err := c.Typed.StorageV1().VolumeAttachments().Delete(t.Context(), "v", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.soon("no volume", func() bool { _, err := get(); return apierrors.IsNotFound(err) })
}

func TestAVolumeIsAttachedWhereItCanRun(t *testing.T) {
	name := "pvc-u"
	wanted := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: storagev1.VolumeAttachmentSpec{Attacher: Driver, NodeName: "a",
		Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}}}
	c := newCluster(t, append(installed(), wanted)...)
	attached := func() bool {
		a, err := c.Typed.StorageV1().VolumeAttachments().Get(t.Context(), "v", metav1.GetOptions{})
		return err == nil && a.Status.Attached && slices.Contains(a.Finalizers, attacherFinalizer)
	}
	c.runs(pod(manager, "a", managerArgs...))
	c.runs(pod(attacher, "b"))
	c.runs(pod(plugin, "a", "--kubelet-registration-path="+socket))
	c.runs(pod(engineImage, "a"))
	c.still("not attached", func() bool { return !attached() })
	c.soon("an instance manager", func() bool {
		p, err := c.Typed.CoreV1().Pods(ns).Get(t.Context(), "instance-manager-a", metav1.GetOptions{})
		if err != nil {
			return false
		}
		p.Status.Conditions = pod(instanceManager, "a").Status.Conditions
		_, err = c.Typed.CoreV1().Pods(ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
		return err == nil
	})
	c.soon("attached", attached)
}

func TestLonghornIsNotRemovedWithoutItsFlag(t *testing.T) {
	c := newCluster(t, installed()...)
	c.runs(pod(manager, "a", managerArgs...))
	c.soon("the flag", func() bool {
		_, err := c.Dynamic.Resource(settings).Namespace(ns).Get(t.Context(), flag, metav1.GetOptions{})
		return err == nil && c.hasClass()
	})
	job := &corev1.Container{Command: []string{"longhorn-manager", "uninstall", "--force"}}
	if code, says := c.Ends(t.Context(), pod("uninstall", "a"), job); code != 1 || !strings.Contains(says, flag) {
		t.Errorf("%d, %q", code, says)
	}
	setting, err := c.Dynamic.Resource(settings).Namespace(ns).Get(t.Context(), flag, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	setting.Object["value"] = "true"
	if _, err := c.Dynamic.Resource(settings).Namespace(ns).Update(t.Context(), setting, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Typed.CoreV1().Pods(ns).Delete(t.Context(), manager+"-a", metav1.DeleteOptions{}); err != nil { // its DaemonSet's controller does
		t.Fatal(err)
	}
	if code, says := c.Ends(t.Context(), pod("uninstall", "a"), job); code != 0 {
		t.Errorf("%d, %q", code, says)
	}
	c.soon("no StorageClass", func() bool { return !c.hasClass() })
	if code, _ := c.Ends(t.Context(), pod("other", "a"), &corev1.Container{Command: []string{"sh"}}); code != 0 {
		t.Errorf("another one ends with %d", code)
	}
}
