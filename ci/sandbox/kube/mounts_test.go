//go:build linux

package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAPodSharesMountsOfNoFolderThatItsMachineDoesNotShare, and of one that it does by a later configuration.
func TestAPodSharesMountsOfNoFolderThatItsMachineDoesNotShare(t *testing.T) {
	programs(t)
	w := newWorld(t, nil, quick(t, nil))
	client := w.start()
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "storage", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.takesPods(client, "storage")
	both, privileged := corev1.MountPropagationBidirectional, true
	pod := func(name, folder string) {
		t.Helper()
		_, err := client.CoreV1().Pods("storage").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			NodeName: wk1.Name,
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.example/any:v1", SecurityContext: &corev1.SecurityContext{Privileged: &privileged},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data", MountPropagation: &both}},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}}}},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	is := func(name string, want func(corev1.PodStatus) bool) {
		t.Helper()
		w.eventually(20*time.Second, name+" is as it should be", func(ctx context.Context) error {
			pod, err := client.CoreV1().Pods("storage").Get(ctx, name, metav1.GetOptions{})
			if err == nil && !want(pod.Status) {
				err = fmt.Errorf("%+v", pod.Status)
			}
			return err
		})
	}
	runs := func(status corev1.PodStatus) bool { return status.Phase == corev1.PodRunning }
	refused := func(status corev1.PodStatus) bool {
		if len(status.ContainerStatuses) != 1 || status.ContainerStatuses[0].State.Waiting == nil {
			return false
		}
		waiting := status.ContainerStatuses[0].State.Waiting
		return waiting.Reason == "CreateContainerError" && strings.Contains(waiting.Message, `path "/var/lib/longhorn" is mounted on "/var" but it is not a shared mount`)
	}
	pod("plugin", "/var/lib/kubelet/plugins/")
	pod("manager", "/var/lib/longhorn/")
	is("plugin", runs)
	is("manager", refused)

	shared := wk1
	shared.Shared = []string{"/var/lib/longhorn"}
	w.NodeUp(shared)
	is("manager", runs)
	pod("other", "/var/lib/longhorn-other")
	is("other", func(status corev1.PodStatus) bool {
		return len(status.ContainerStatuses) == 1 && status.ContainerStatuses[0].State.Waiting != nil && status.ContainerStatuses[0].State.Waiting.Reason == "CreateContainerError"
	})
	if err := client.CoreV1().Pods("storage").Delete(t.Context(), "other", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
