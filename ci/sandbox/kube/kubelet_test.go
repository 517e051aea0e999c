//go:build linux

package kube

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/test/tell"
)

// TestAKubeletThatRestartsLeavesContainersAloneAndDoesNothingElse: what runs goes on, and its node stays Ready. Nothing is probed, reported or started
// before it is back.
func TestAKubeletThatRestartsLeavesContainersAloneAndDoesNothingElse(t *testing.T) {
	const away = 4 * time.Second
	w := newWorld(t, map[string]string{"registry.example/tools": programs(t, "kubernetes")["kubectl"]}, quick(t, profile.Faults{profile.KubeletRestarts: away.String()}))
	client := w.start()
	ctx := t.Context()
	if _, err := client.CoreV1().Secrets("default").Create(ctx, secret("word"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := createWindow(ctx, client); err != nil {
		t.Fatal(err)
	}
	program := w.options.Binaries.Images["registry.example/tools"]
	var processes []int
	w.eventually(20*time.Second, "the container runs", func(context.Context) error {
		if processes = processesOf(t, program); len(processes) == 0 {
			return fmt.Errorf("no process")
		}
		return nil
	})
	began := time.Now()
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	on := pods.Items[0].Spec.NodeName
	ready := func() metav1.Time {
		t.Helper()
		node, err := client.CoreV1().Nodes().Get(ctx, on, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, is := range node.Status.Conditions {
			if is.Type == corev1.NodeReady && is.Status == corev1.ConditionTrue {
				return is.LastTransitionTime
			}
		}
		t.Fatalf("%s is not Ready: %+v", on, node.Status.Conditions)
		return metav1.Time{}
	}
	since := ready()
	late := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "app", Image: "registry.example/any:v1"}}}}
	if _, err := client.CoreV1().Pods("default").Create(ctx, late, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tell.Fault(t, "the kubelet of %s is away for %s", on, away)

	w.available(client, "default", "window", away+20*time.Second)
	if took := time.Since(began); took < away-time.Second {
		t.Errorf("the pod was seen to be ready %s after its start, while the kubelet was away", took)
	}
	w.eventually(10*time.Second, "the other pod runs", func(ctx context.Context) error {
		pod, err := client.CoreV1().Pods("default").Get(ctx, "late", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		if err == nil && pod.Status.StartTime.Sub(began) > 0 && pod.Status.ContainerStatuses[0].State.Running.StartedAt.Sub(began) < away-2*time.Second {
			t.Errorf("it was started while the kubelet was away: %+v", pod.Status)
		}
		return err
	})

	// What the controller manager says of a node's pods that it has not heard of for 50 s.
	lost := []byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)
	if _, err := client.CoreV1().Pods("default").Patch(ctx, "late", types.StrategicMergePatchType, lost, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	w.eventually(10*time.Second, "the other pod is Ready again", func(ctx context.Context) error {
		pod, err := client.CoreV1().Pods("default").Get(ctx, "late", metav1.GetOptions{})
		if err == nil && !slices.ContainsFunc(pod.Status.Conditions, func(is corev1.PodCondition) bool {
			return is.Type == corev1.PodReady && is.Status == corev1.ConditionTrue
		}) {
			err = fmt.Errorf("%+v", pod.Status.Conditions)
		}
		return err
	})
	if got := processesOf(t, program); !slices.Equal(got, processes) {
		t.Errorf("the container's processes were %v and are %v", processes, got)
	}
	if got := ready(); !got.Equal(&since) {
		t.Errorf("the node became Ready anew at %s", got)
	}
}
