package teardown

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
)

// provisionedBy names the driver that made a volume and takes it back (AnnDynamicallyProvisioned in staging/src/k8s.io/component-helpers/storage/volume of
// Kubernetes).
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// RemoveVolumes removes the claims whose volumes go with them, by their class or their own word, and what runs with them, while the driver runs that
// takes the storage back. A volume that is to be retained stays with its claim.
func (c *Cluster) RemoveVolumes(ctx context.Context, tell func(string)) (did bool, err error) {
	var claimed *corev1.PersistentVolumeClaimList
	var made *corev1.PersistentVolumeList
	var running *corev1.PodList
	err = c.client.Ask(ctx, func(ctx context.Context) (err error) {
		if claimed, err = c.typed.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
		if made, err = c.typed.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
		running, err = c.typed.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("list volumes and who uses them: %w", kube.Brief(err))
	}
	retained := map[string]bool{}
	gone := []condemned{}
	for _, volume := range made.Items {
		switch {
		case volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
			retained[volume.Name] = true
		case volume.Status.Phase == corev1.VolumeBound,
			volume.Status.Phase == corev1.VolumeReleased && volume.Annotations[provisionedBy] != "": // by an earlier destroy that was interrupted
			gone = append(gone, condemned{kube.Volumes, "", volume.Name, volume.UID})
		}
	}
	users := []condemned{}
	freed := []condemned{}
	for _, claim := range claimed.Items {
		if retained[claim.Spec.VolumeName] {
			continue
		}
		freed = append(freed, condemned{kube.Claims, claim.Namespace, claim.Name, claim.UID})
		for _, pod := range running.Items {
			if mounts(&pod, claim.Name) && pod.Namespace == claim.Namespace {
				user, err := c.maker(ctx, &pod)
				if err != nil {
					return false, err
				}
				if !slices.Contains(users, user) {
					users = append(users, user)
				}
			}
		}
	}
	if len(freed) == 0 && len(gone) == 0 {
		return false, nil
	}
	if err := c.remove(ctx, slices.Concat(users, freed), tell); err != nil {
		return true, err
	}
	return true, c.await(ctx, gone, tell)
}

func mounts(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim
	})
}

// maker is who makes a pod again when it goes: the last in the chain of its controllers, or itself.
func (c *Cluster) maker(ctx context.Context, pod *corev1.Pod) (condemned, error) {
	last := condemned{kube.Pods, pod.Namespace, pod.Name, pod.UID}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.kinds))
	for owner := metav1.GetControllerOf(pod); owner != nil; {
		group, err := schema.ParseGroupVersion(owner.APIVersion)
		if err != nil {
			return last, err
		}
		kind, err := mapper.RESTMapping(group.WithKind(owner.Kind).GroupKind(), group.Version)
		if meta.IsNoMatchError(err) || err == nil && kind.Scope.Name() != meta.RESTScopeNameNamespace {
			return last, nil
		}
		if err != nil {
			return last, fmt.Errorf("who makes %s: %w", last, kube.Brief(err))
		}
		there, err := c.metadata.Resource(kind.Resource).Namespace(pod.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && there.UID != owner.UID {
			return last, nil
		}
		if err != nil {
			return last, fmt.Errorf("who makes %s: %w", last, kube.Brief(err))
		}
		last = condemned{kind.Resource, there.Namespace, there.Name, there.UID}
		owner = metav1.GetControllerOf(there)
	}
	return last, nil
}

// Longhorn refuses to be removed while this setting of its own is not true, so that nobody does it by mistake
// (app/pre_uninstall.go and controller/uninstall_controller.go of longhorn-manager).
var (
	longhornSettings = schema.GroupVersionResource{Group: "longhorn.io", Version: "v1beta2", Resource: "settings"}
	longhornFlag     = kube.Object{Namespace: layers.StorageNamespace, Name: "deleting-confirmation-flag"}
)

// longhornDriver is Longhorn's name as a CSI driver.
const longhornDriver = "driver.longhorn.io"

// LonghornVolumes are the volumes that Longhorn has made, by their claims, "namespace/name", or by their own names where none claims them.
func (c *Cluster) LonghornVolumes(ctx context.Context) (names []string, err error) {
	var made *corev1.PersistentVolumeList
	err = c.client.Ask(ctx, func(ctx context.Context) (err error) {
		made, err = c.typed.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", kube.Brief(err))
	}
	for _, volume := range made.Items {
		if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != longhornDriver {
			continue
		}
		name := volume.Name
		if claim := volume.Spec.ClaimRef; claim != nil {
			name = claim.Namespace + "/" + claim.Name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// LetLonghornGo tells Longhorn that it may be removed; whoever has it removed has confirmed that.
func (c *Cluster) LetLonghornGo(ctx context.Context, _ func(string)) (did bool, err error) {
	patch, err := json.Marshal(map[string]any{"value": "true"})
	if err != nil {
		return false, err
	}
	err = c.client.Ask(ctx, func(ctx context.Context) error {
		settings := c.client.Resource(longhornSettings).Namespace(longhornFlag.Namespace)
		now, err := settings.Get(ctx, longhornFlag.Name, metav1.GetOptions{})
		if err != nil || now.Object["value"] == "true" {
			return err
		}
		did = true
		_, err = settings.Patch(ctx, longhornFlag.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	if apierrors.IsNotFound(err) { // no Longhorn
		return false, nil
	}
	return did, err
}
