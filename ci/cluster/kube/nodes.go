package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NotReady are the nodes whose kubelet does not report them fit for pods, or is not heard of, each with what its condition says:
// "worker-1: Ready is Unknown: NodeStatusUnknown: Kubelet stopped posting node status.".
func (c *Client) NotReady(ctx context.Context) ([]string, error) {
	nodes, err := c.Resource(Nodes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var list []string
	for i := range nodes.Items {
		if seen, ok := HasCondition(&nodes.Items[i], "Ready"); !ok {
			list = append(list, nodes.Items[i].GetName()+": "+seen)
		}
	}
	return list, nil
}
