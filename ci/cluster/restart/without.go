package restart

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers/state"
)

// without is what nobody else does while a node is down.
type without struct {
	pods bool // no other node takes pods
	api  bool // it is the only control plane
}

// without looks what the cluster lacks while the node is down.
func (r *rolling) without(ctx context.Context, name string) (without, error) {
	var nodes *corev1.NodeList
	err := r.kube.Ask(ctx, func(ctx context.Context) (err error) {
		nodes, err = r.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return without{}, err
	}
	return withoutNode(name, nodes.Items, r.known), nil
}

func withoutNode(name string, nodes []corev1.Node, known state.VMs) without {
	missing := without{pods: true, api: known[name].Role == config.RoleControlPlane}
	for _, node := range nodes {
		if node.Name == name && kube.RefusesPods(&node) || node.Name != name && kube.TakesPods(&node) {
			missing.pods = false
		}
	}
	for other, vm := range known {
		if other != name && vm.Role == config.RoleControlPlane {
			missing.api = false
		}
	}
	return missing
}

// away tells a person of it.
func (w without) away() []string {
	var texts []string
	if w.api {
		texts = append(texts, "it is the only control plane: nobody reaches the API while it restarts")
	}
	if w.pods {
		texts = append(texts, "no other node takes pods: its own end with it, and start again when it is back")
	}
	return texts
}
