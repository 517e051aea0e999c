package longhorn

import (
	"context"
	"errors"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// sidecars are the driver's Deployments, by the variable that names their image to the deployer.
var sidecars = []struct{ app, image string }{
	{attacher, "CSI_ATTACHER_IMAGE"},
	{provisioner, "CSI_PROVISIONER_IMAGE"},
	{resizer, "CSI_RESIZER_IMAGE"},
	{snapshotter, "CSI_SNAPSHOTTER_IMAGE"},
}

const sidecarReplicas = 3

// deploy is what a driver deployer does, once: what is removed afterwards, the next one makes anew. It asks every manager first whether
// its node can mount for others.
func (w *world) deploy(ctx context.Context, namespace string) error {
	pods := w.ready(namespace, deployer)
	if len(pods) == 0 {
		return nil
	}
	set, err := w.daemonSets.DaemonSets(namespace).Get(manager)
	if err != nil || set.Status.NumberReady < set.Status.DesiredNumberScheduled {
		return gone(err)
	}
	pod := pods[0]
	if w.deployed == pod.UID {
		return nil
	}
	images := map[string]string{}
	for _, variable := range pod.Spec.Containers[0].Env {
		images[variable.Name] = variable.Value
	}
	yes := true
	_, err = w.Typed.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: Driver}, Spec: storagev1.CSIDriverSpec{PodInfoOnMount: &yes, StorageCapacity: &yes},
	}, metav1.CreateOptions{})
	failed := there(err)
	account := pod.Spec.ServiceAccountName
	for _, sidecar := range sidecars {
		replicas := int32(sidecarReplicas)
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: sidecar.app, Namespace: namespace, Labels: map[string]string{"app": sidecar.app}}}
		deployment.Spec.Replicas, deployment.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: deployment.Labels}
		deployment.Spec.Template = template(sidecar.app, account, corev1.Container{Name: sidecar.app, Image: images[sidecar.image], Args: []string{"--leader-election"}})
		_, err := w.Typed.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{})
		failed = errors.Join(failed, there(err))
	}
	if failed != nil {
		return failed
	}
	one := intstr.FromInt32(1)
	nodes := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: plugin, Namespace: namespace, Labels: map[string]string{"app": plugin}}}
	nodes.Spec.Selector = &metav1.LabelSelector{MatchLabels: nodes.Labels}
	nodes.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &one}}
	nodes.Spec.Template = template(plugin, account,
		corev1.Container{Name: "node-driver-registrar", Image: images["CSI_NODE_DRIVER_REGISTRAR_IMAGE"], Args: []string{"--kubelet-registration-path=" + socket}},
		corev1.Container{Name: "longhorn-liveness-probe", Image: images["CSI_LIVENESS_PROBE_IMAGE"]},
		corev1.Container{Name: plugin, Image: argument(pod.Spec.Containers[0].Args, "--manager-image")},
	)
	_, err = w.Typed.AppsV1().DaemonSets(namespace).Create(ctx, nodes, metav1.CreateOptions{})
	if err = there(err); err == nil {
		w.deployed = pod.UID
	}
	return err
}

// socket is where the kubelet finds the driver, which it knows by this path.
const socket = "/var/lib/kubelet/plugins/" + Driver + "/csi.sock"

// registers tells whether a pod makes the driver known to its node's kubelet.
func registers(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.Containers {
		for _, argument := range c.Args {
			if strings.HasSuffix(argument, "="+socket) {
				return true
			}
		}
	}
	return false
}
