//go:build linux

package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/test/tell"
)

// ownMirror is the line of the sandbox's description that has its registry asked without TLS.
const ownMirror = "  registryMirrors: {\"192.168.77.13:5000\": [\"http://192.168.77.13:5000\"]}\n"

// TestARegistryWithoutTLSIsAskedAsItsOwnMirrorAlone: a machine asks the registry itself by HTTPS, whatever castle pushed there by HTTP.
func TestARegistryWithoutTLSIsAskedAsItsOwnMirrorAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", append(justPlatform(), change{file: described, from: ownMirror})...)
	tell.Fault(t, "cluster.yaml has no mirror for a registry without TLS")
	w.on()
	w.castle("create").succeeds()
	k := w.kubernetes(w.unsealed("kubeconfig"))
	image := w.seed().Registry.String() + "/tazzo/tazlab.net:" + seedTag
	k.must2(k.typed.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "blog"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "blog", Image: image}}},
	}, metav1.CreateOptions{}))
	k.until("blog", func(pod *corev1.Pod) (string, bool) {
		for _, container := range pod.Status.ContainerStatuses {
			if waiting := container.State.Waiting; waiting != nil {
				return waiting.Reason + ": " + waiting.Message, waiting.Reason == "ImagePullBackOff" && strings.Contains(waiting.Message,
					`Head "https://192.168.77.13:5000/v2/tazzo/tazlab.net/manifests/`+seedTag+`": http: server gave HTTP response to HTTPS client`)
			}
		}
		return string(pod.Status.Phase), false
	})
	boots := k.boots()

	// A cluster that is up takes a mirror without a restart.
	w.live = w.copyLive("with", justPlatform()...)
	if said := w.castle("create").succeeds().stderr.String(); strings.Contains(said, "warning: ") {
		t.Errorf("create warns:\n%s", said)
	}
	k.until("blog", func(pod *corev1.Pod) (string, bool) {
		return fmt.Sprint(pod.Status.Phase, pod.Status.ContainerStatuses), pod.Status.Phase == corev1.PodRunning
	})
	for node, boot := range k.boots() {
		if boots[node] != boot {
			t.Errorf("%s was restarted", node)
		}
	}
}

// until waits for what is seen of a pod.
func (k kube) until(name string, is func(*corev1.Pod) (string, bool)) {
	k.world.t.Helper()
	k.world.until(time.Minute, "pod "+name, func() (string, bool) {
		pod, err := k.typed.CoreV1().Pods("default").Get(k.world.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return is(pod)
	})
}
