package longhorn

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// smallest is Longhorn's MinimalVolumeSize.
var smallest = resource.MustParse("10Mi")

// Who made a volume, and who has attached one, as Kubernetes' own sidecars write it.
const (
	provisionedBy     = "pv.kubernetes.io/provisioned-by"
	attacherFinalizer = "external-attacher/driver-longhorn-io"
)

// provision makes volumes for claims, and removes those whose claim is gone.
func (w *world) provision(ctx context.Context, namespace string) error {
	if len(w.ready(namespace, provisioner)) == 0 {
		return nil
	}
	claims, err := w.claims.List(labels.Everything())
	if err != nil {
		return err
	}
	var failed error
	for _, claim := range claims {
		if claim.Status.Phase == corev1.ClaimPending && claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil && claim.Spec.StorageClassName != nil {
			if class, err := w.classes.Get(*claim.Spec.StorageClassName); err == nil && class.Provisioner == Driver {
				failed = errors.Join(failed, w.makeVolume(ctx, claim, class))
			}
		}
	}
	volumes, err := w.volumes.List(labels.Everything())
	if err != nil {
		return errors.Join(failed, err)
	}
	for _, volume := range volumes {
		ours := volume.Annotations[provisionedBy] == Driver && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
		if ours && volume.Status.Phase == corev1.VolumeReleased && volume.DeletionTimestamp == nil && !w.attached(volume.Name) {
			failed = errors.Join(failed, gone(w.Typed.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})))
		}
	}
	return failed
}

func (w *world) makeVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Cmp(smallest) < 0 {
		size = smallest
	}
	name := "pvc-" + string(claim.UID)
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: Driver}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: size}, AccessModes: claim.Spec.AccessModes, StorageClassName: class.Name,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: Driver, VolumeHandle: name, FSType: "ext4"}},
		},
	}
	if class.ReclaimPolicy != nil {
		volume.Spec.PersistentVolumeReclaimPolicy = *class.ReclaimPolicy
	}
	_, err := w.Typed.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	return there(err)
}

func (w *world) attached(volume string) bool {
	attachments, err := w.attachments.List(labels.Everything())
	return err != nil || slices.ContainsFunc(attachments, func(a *storagev1.VolumeAttachment) bool {
		return a.Spec.Source.PersistentVolumeName != nil && *a.Spec.Source.PersistentVolumeName == volume
	})
}

// attach attaches volumes to nodes, and detaches them.
func (w *world) attach(ctx context.Context, namespace string) error {
	if len(w.ready(namespace, attacher)) == 0 {
		return nil
	}
	attachments, err := w.attachments.List(labels.Everything())
	if err != nil {
		return err
	}
	var failed error
	for _, a := range attachments {
		ours := slices.Contains(a.Finalizers, attacherFinalizer)
		switch {
		case a.Spec.Attacher != Driver:
		case a.DeletionTimestamp != nil && ours:
			next := a.DeepCopy()
			next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == attacherFinalizer })
			_, err := w.Typed.StorageV1().VolumeAttachments().Update(ctx, next, metav1.UpdateOptions{})
			failed = errors.Join(failed, gone(err))
		case a.DeletionTimestamp != nil || a.Status.Attached || !w.carries(namespace, a.Spec.NodeName):
		case !ours:
			next := a.DeepCopy()
			next.Finalizers = append(next.Finalizers, attacherFinalizer)
			_, err := w.Typed.StorageV1().VolumeAttachments().Update(ctx, next, metav1.UpdateOptions{})
			failed = errors.Join(failed, gone(err))
		default:
			next := a.DeepCopy()
			next.Status.Attached = true
			_, err := w.Typed.StorageV1().VolumeAttachments().UpdateStatus(ctx, next, metav1.UpdateOptions{})
			failed = errors.Join(failed, gone(err))
		}
	}
	return failed
}

// carries tells whether a volume can be attached to a node: the engine's image and an instance manager are there, and the kubelet knows
// the driver.
func (w *world) carries(namespace, node string) bool {
	on := func(app string, also func(*corev1.Pod) bool) bool {
		return slices.ContainsFunc(w.ready(namespace, app), func(pod *corev1.Pod) bool { return pod.Spec.NodeName == node && (also == nil || also(pod)) })
	}
	return on(instanceManager, nil) && on(engineImage, nil) && on(plugin, registers)
}
