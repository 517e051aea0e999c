//go:build linux

package agent

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// podOn is a worker of a pod that the API has under the given uid.
func podOn(t *testing.T, uid types.UID) (*worker, *fake.Clientset) {
	t.Helper()
	there := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: uid}}
	client := fake.NewClientset(there)
	a, err := New(Options{Folder: t.TempDir(), Memory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	a.api = &api{client: client}
	pod := there.DeepCopy()
	pod.UID = "ours"
	on := &node{}
	on.context = t.Context()
	return newWorker(a, on, pod), client
}

func conflict(clienttesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewConflict(corev1.Resource("pods"), "web", context.DeadlineExceeded)
}

// The object that a forestalled write leaves behind has to go nevertheless: nobody else would remove it.
func TestAPodIsRemovedWhoseLastStatusWasForestalled(t *testing.T) {
	w, client := podOn(t, "ours")
	forestalled := 0
	client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if forestalled++; forestalled == 1 {
			return conflict(action)
		}
		return false, nil, nil
	})
	w.remove()
	if _, err := client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod is left to nobody: %v", err)
	}
}

func TestAPodOfTheSameNameIsSomebodyElses(t *testing.T) {
	for uid, want := range map[types.UID]bool{"ours": false, "another": true} {
		w, _ := podOn(t, uid)
		_, _, err := conflict(nil)
		if got := w.isGone(t.Context(), w.agent.api, err); got != want {
			t.Errorf("with %s there, gone is %t", uid, got)
		}
	}
}

func TestAStatusThatWasForestalledIsWrittenAgain(t *testing.T) {
	w, client := podOn(t, "ours")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	calls := 0
	client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if calls++; calls == 1 {
			return conflict(action)
		}
		cancel()
		return false, nil, nil
	})
	w.report(ctx)
	if calls < 2 || w.context.Err() != nil {
		t.Errorf("%d writes; the pod counts as gone: %v", calls, w.context.Err())
	}
}
