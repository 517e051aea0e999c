//go:build linux

package agent

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// registrationPath is the flag by which a driver's node-driver-registrar tells the kubelet where the driver's socket is. The folder that
// the socket stands in is named after the driver, of which Longhorn and most others make use.
const registrationPath = "--kubelet-registration-path="

// attachControlled has the controller manager attach volumes to a node: the kubelet writes it when it registers
// (pkg/volume/util/util.go of Kubernetes).
const attachControlled = "volumes.kubernetes.io/controller-managed-attach-detach"

// stored is a volume that a driver mounts on the node.
type stored struct{ volume, driver string }

// claimed are the pod's volumes of claims, and an error where one cannot be mounted yet, in a kubelet's words: its claim is bound, it is
// attached to the node, and the driver is registered there (pkg/volume/csi of Kubernetes v1.36).
func (w *worker) claimed(ctx context.Context, connected *api, pod *corev1.Pod) (mounts []stored, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim, err := connected.client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, volume.PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return nil, fmt.Errorf("volume %q : PVC %s/%s is not bound", volume.Name, claim.Namespace, claim.Name)
		}
		persistent, err := connected.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if persistent.Spec.CSI == nil {
			continue
		}
		mount := stored{persistent.Name, persistent.Spec.CSI.Driver}
		attached, err := connected.attached(ctx, mount, pod.Spec.NodeName)
		if err != nil {
			return nil, err
		}
		if !attached {
			return nil, fmt.Errorf("volume %q : volume is not attached to the node yet", mount.volume)
		}
		if !w.agent.registered(w.node, mount.driver) {
			return nil, fmt.Errorf("volume %q : driver name %s not found in the list of registered CSI drivers", mount.volume, mount.driver)
		}
		mounts = append(mounts, mount)
	}
	return mounts, nil
}

// attached tells whether a volume is attached to a node, or its driver attaches none.
func (c *api) attached(ctx context.Context, mount stored, node string) (bool, error) {
	driver, err := c.client.StorageV1().CSIDrivers().Get(ctx, mount.driver, metav1.GetOptions{})
	if err == nil && driver.Spec.AttachRequired != nil && !*driver.Spec.AttachRequired {
		return true, nil
	}
	attachments, err := c.client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(attachments.Items, func(a storagev1.VolumeAttachment) bool {
		return a.Status.Attached && a.DeletionTimestamp == nil && a.Spec.NodeName == node && a.Spec.Source.PersistentVolumeName != nil && *a.Spec.Source.PersistentVolumeName == mount.volume
	}), nil
}

// registered tells whether a pod that is ready on the node has registered a driver with its kubelet.
func (a *Agent) registered(on *node, driver string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.workers {
		if w.node == on && w.registers(driver) {
			return true
		}
	}
	return false
}

func (w *worker) registers(driver string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ready.IsZero() || w.deleted {
		return false
	}
	for _, c := range w.containers {
		for _, argument := range c.spec.Args {
			if socket, is := strings.CutPrefix(argument, registrationPath); is && path.Base(path.Dir(socket)) == driver {
				return true
			}
		}
	}
	return false
}

// unmount waits until every volume that was mounted for the pod can be unmounted, which its driver does: a pod whose driver is gone
// stays Terminating (pkg/kubelet/kubelet_pods.go of Kubernetes, podsVolumesExist).
func (w *worker) unmount() {
	for {
		w.mu.Lock()
		mounts := w.mounts
		w.mu.Unlock()
		if !slices.ContainsFunc(mounts, func(m stored) bool { return !w.agent.registered(w.node, m.driver) }) {
			return
		}
		select {
		case <-w.context.Done():
			return
		case <-time.After(retryPeriod):
		}
	}
}
