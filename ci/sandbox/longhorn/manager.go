package longhorn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const (
	classConfigMap = "longhorn-storageclass"
	classKey       = "storageclass.yaml"
	className      = "longhorn"
	lastApplied    = "longhorn.io/last-applied-configmap"

	instanceManager = "instance-manager"
	engineImage     = "engine-image"
)

// flag is the setting without which Longhorn is not removed.
const flag = "deleting-confirmation-flag"

var (
	settings    = schema.GroupVersionResource{Group: "longhorn.io", Version: "v1beta2", Resource: "settings"}
	everyEngine = labels.SelectorFromSet(labels.Set{"app": engineImage})
)

// manage is what the managers do.
func (w *world) manage(ctx context.Context, namespace string) error {
	managers := w.ready(namespace, manager)
	if len(managers) == 0 {
		return nil
	}
	args := managers[0].Spec.Containers[0].Args
	return errors.Join(
		w.makeFlag(ctx, namespace),
		w.makeClass(ctx, namespace),
		w.makeEngineImage(ctx, managers[0], argument(args, "--engine-image")),
		w.makeInstanceManagers(ctx, managers, argument(args, "--instance-manager-image")),
	)
}

// argument is the one after a flag.
func argument(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// makeFlag makes the setting that keeps Longhorn from being removed; of all the others nobody here knows.
func (w *world) makeFlag(ctx context.Context, namespace string) error {
	setting := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "longhorn.io/v1beta2", "kind": "Setting",
		"metadata": map[string]any{"name": flag, "namespace": namespace}, "value": "false",
	}}
	_, err := w.Dynamic.Resource(settings).Namespace(namespace).Get(ctx, flag, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = w.Dynamic.Resource(settings).Namespace(namespace).Create(ctx, setting, metav1.CreateOptions{})
	return there(err)
}

// makeClass makes the StorageClass that the ConfigMap describes, and anew where that has changed: most of it cannot be changed.
func (w *world) makeClass(ctx context.Context, namespace string) error {
	source, err := w.configMaps.ConfigMaps(namespace).Get(classConfigMap)
	if err != nil {
		return gone(err)
	}
	text := source.Data[classKey]
	if now, err := w.classes.Get(className); err == nil && now.Annotations[lastApplied] == text {
		return nil
	}
	var class storagev1.StorageClass
	if err := yaml.UnmarshalStrict([]byte(text), &class); err != nil {
		return fmt.Errorf("%s of the ConfigMap %s: %w", classKey, classConfigMap, err)
	}
	if class.Annotations == nil {
		class.Annotations = map[string]string{}
	}
	class.Annotations[lastApplied] = text
	if err := gone(w.Typed.StorageV1().StorageClasses().Delete(ctx, className, metav1.DeleteOptions{})); err != nil {
		return err
	}
	_, err = w.Typed.StorageV1().StorageClasses().Create(ctx, &class, metav1.CreateOptions{})
	return there(err)
}

// makeEngineImage has the engine's image on each node, which is done once.
func (w *world) makeEngineImage(ctx context.Context, of *corev1.Pod, image string) error {
	if sets, err := w.daemonSets.DaemonSets(of.Namespace).List(everyEngine); err != nil || len(sets) > 0 {
		return err
	}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: engineImage + "-ei", Namespace: of.Namespace, Labels: map[string]string{"app": engineImage}}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: set.Labels}
	set.Spec.Template = template(engineImage, of.Spec.ServiceAccountName, corev1.Container{Name: set.Name, Image: image})
	_, err := w.Typed.AppsV1().DaemonSets(of.Namespace).Create(ctx, set, metav1.CreateOptions{})
	return there(err)
}

// makeInstanceManagers has one on each node that has a manager, in which the volumes of that node run.
func (w *world) makeInstanceManagers(ctx context.Context, managers []*corev1.Pod, image string) error {
	var failed error
	yes := true
	for _, m := range managers {
		if node, err := w.nodes.Get(m.Spec.NodeName); err != nil || node.Spec.Unschedulable {
			continue // its pods name their node, so that the scheduler would not keep them off it
		}
		name := instanceManager + "-" + m.Spec.NodeName
		if _, err := w.pods.Pods(m.Namespace).Get(name); !apierrors.IsNotFound(err) {
			continue
		}
		made := template(instanceManager, m.Spec.ServiceAccountName, corev1.Container{Name: instanceManager, Image: image})
		pod := &corev1.Pod{ObjectMeta: made.ObjectMeta, Spec: made.Spec}
		pod.Name, pod.Namespace, pod.Spec.NodeName = name, m.Namespace, m.Spec.NodeName
		// It goes with the node's manager here; Longhorn's is its InstanceManager's, which its removal removes.
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: m.Name, UID: m.UID, Controller: &yes}}
		_, err := w.Typed.CoreV1().Pods(m.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		failed = errors.Join(failed, there(err))
	}
	return failed
}

// template is a pod of a part of Longhorn.
func template(app, account string, containers ...corev1.Container) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: containers},
	}
}
