package longhorn

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Ends is how a container ends that no program stands for: with the exit code, and what it says last. Every container but that of
// Longhorn's removal succeeds.
func (l *Longhorn) Ends(ctx context.Context, pod *corev1.Pod, container *corev1.Container) (code int, says string) {
	if !slices.Contains(container.Command, "uninstall") {
		return 0, ""
	}
	for {
		w := l.now()
		if w != nil {
			done, says, err := w.uninstall(ctx, pod.Namespace)
			if err == nil && says != "" {
				return 1, says
			}
			if err == nil && done {
				return 0, ""
			}
		}
		select {
		case <-ctx.Done():
			return 1, ctx.Err().Error()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// uninstall takes the next step of Longhorn's removal. says is why there is none.
func (w *world) uninstall(ctx context.Context, namespace string) (done bool, says string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	setting, err := w.Dynamic.Resource(settings).Namespace(namespace).Get(ctx, flag, metav1.GetOptions{})
	if err != nil {
		return false, "failed to check deleting-confirmation-flag setting: " + err.Error(), nil
	}
	if value, _, _ := unstructured.NestedString(setting.Object, "value"); value != "true" {
		return false, "cannot uninstall Longhorn because deleting-confirmation-flag is set to `false`", nil
	}
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	sets, deployments := w.Typed.AppsV1().DaemonSets(namespace), w.Typed.AppsV1().Deployments(namespace)
	failed := gone(sets.Delete(ctx, manager, options))
	engines, err := w.daemonSets.DaemonSets(namespace).List(everyEngine)
	failed = errors.Join(failed, err)
	for _, engine := range engines {
		failed = errors.Join(failed, gone(sets.Delete(ctx, engine.Name, options)))
	}
	for _, name := range []string{deployer, attacher, provisioner, resizer, snapshotter} {
		failed = errors.Join(failed, gone(deployments.Delete(ctx, name, options)))
	}
	failed = errors.Join(failed, gone(sets.Delete(ctx, plugin, options)),
		gone(w.Typed.StorageV1().CSIDrivers().Delete(ctx, Driver, metav1.DeleteOptions{})),
		gone(w.Typed.StorageV1().StorageClasses().Delete(ctx, className, metav1.DeleteOptions{})))
	return failed == nil, "", failed
}
