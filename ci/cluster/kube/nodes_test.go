package kube

import (
	"slices"
	"testing"
)

func TestNodesThatAreNotReadySayWhy(t *testing.T) {
	server := shared.Server(t)
	for name, status := range map[string]string{
		"not-ready-well":   `{conditions: [{type: Ready, status: "True", reason: KubeletReady, message: m}]}`,
		"not-ready-silent": `{conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.}]}`,
		"not-ready-new":    `{}`,
	} {
		server.Put(Nodes, `{apiVersion: v1, kind: Node, metadata: {name: `+name+`}, status: `+status+`}`)
		t.Cleanup(func() { server.Delete(Nodes, "", name) })
	}
	got, err := connect(t, server).NotReady(t.Context())
	want := []string{"not-ready-new: not Ready yet", "not-ready-silent: Ready is Unknown: NodeStatusUnknown: Kubelet stopped posting node status."}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
