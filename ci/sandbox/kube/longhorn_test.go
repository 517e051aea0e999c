//go:build linux

package kube

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ofLonghorn is what its chart makes.
const ofLonghorn = `
{apiVersion: v1, kind: Namespace, metadata: {name: longhorn-system}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: longhorn-service-account, namespace: longhorn-system}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: longhorn-storageclass, namespace: longhorn-system}
data:
  storageclass.yaml: |
    {kind: StorageClass, apiVersion: storage.k8s.io/v1, metadata: {name: longhorn}, provisioner: driver.longhorn.io}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: longhorn-manager, namespace: longhorn-system}
spec:
  selector: {matchLabels: {app: longhorn-manager}}
  template:
    metadata: {labels: {app: longhorn-manager}}
    spec:
      serviceAccountName: longhorn-service-account
      containers: [{name: longhorn-manager, image: "longhornio/longhorn-manager:v1", args: [daemon, --engine-image, "longhornio/longhorn-engine:v1", --instance-manager-image, "longhornio/longhorn-instance-manager:v1"]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: longhorn-driver-deployer, namespace: longhorn-system}
spec:
  selector: {matchLabels: {app: longhorn-driver-deployer}}
  template:
    metadata: {labels: {app: longhorn-driver-deployer}}
    spec:
      serviceAccountName: longhorn-service-account
      containers:
        - name: longhorn-driver-deployer
          image: longhornio/longhorn-manager:v1
          args: [deploy-driver, --manager-image, "longhornio/longhorn-manager:v1"]
          env:
            - {name: CSI_ATTACHER_IMAGE, value: "longhornio/csi-attacher:v1"}
            - {name: CSI_PROVISIONER_IMAGE, value: "longhornio/csi-provisioner:v1"}
            - {name: CSI_RESIZER_IMAGE, value: "longhornio/csi-resizer:v1"}
            - {name: CSI_SNAPSHOTTER_IMAGE, value: "longhornio/csi-snapshotter:v1"}
            - {name: CSI_NODE_DRIVER_REGISTRAR_IMAGE, value: "longhornio/csi-node-driver-registrar:v1"}
            - {name: CSI_LIVENESS_PROBE_IMAGE, value: "longhornio/livenessprobe:v1"}
`

const withVolume = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {storageClassName: longhorn, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: db, image: "registry.example/db:1", volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`

// A pod waits for its volume, and cannot go while nobody can unmount it.
func TestAPodComesAndGoesWithItsVolume(t *testing.T) {
	w := newWorld(t, nil, quick(t, nil))
	client := w.start()
	w.apply(withVolume)
	phase := func(ctx context.Context) (corev1.PodPhase, error) {
		pod, err := client.CoreV1().Pods("default").Get(ctx, "db", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return pod.Status.Phase, nil
	}
	w.eventually(time.Minute, "the pod waits for its claim", func(ctx context.Context) error {
		pod, err := client.CoreV1().Pods("default").Get(ctx, "db", metav1.GetOptions{})
		if err == nil && (len(pod.Status.Conditions) == 0 || pod.Status.Conditions[0].Reason != corev1.PodReasonUnschedulable) {
			err = fmt.Errorf("%+v", pod.Status)
		}
		return err
	})
	w.apply(ofLonghorn)
	w.eventually(2*time.Minute, "the pod runs", func(ctx context.Context) error {
		if now, err := phase(ctx); err != nil || now != corev1.PodRunning {
			return errors.Join(err, fmt.Errorf("it is %s", now))
		}
		return nil
	})

	w.removeDriver(client)
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if pod, err := client.CoreV1().Pods("default").Get(t.Context(), "db", metav1.GetOptions{}); err != nil || pod.DeletionTimestamp == nil {
			t.Fatalf("without its driver the pod went: %v", err)
		}
	}
	if err := client.CoreV1().Pods("longhorn-system").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=longhorn-driver-deployer"}); err != nil {
		t.Fatal(err)
	}
	w.eventually(2*time.Minute, "the next deployer brings the driver, and the pod goes", func(ctx context.Context) error {
		if _, err := phase(ctx); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
	if err := client.CoreV1().PersistentVolumeClaims("default").Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(time.Minute, "the volume goes", func(ctx context.Context) error {
		volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		if err == nil && len(volumes.Items) > 0 {
			err = fmt.Errorf("%s is %s", volumes.Items[0].Name, volumes.Items[0].Status.Phase)
		}
		return err
	})
}

func (w *world) removeDriver(client kubernetes.Interface) {
	w.t.Helper()
	if err := client.AppsV1().DaemonSets("longhorn-system").Delete(w.t.Context(), "longhorn-csi-plugin", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.eventually(time.Minute, "the driver is gone", func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods("longhorn-system").List(ctx, metav1.ListOptions{LabelSelector: "app=longhorn-csi-plugin"})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods are there", len(pods.Items))
		}
		return err
	})
}
