package removenode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
	corev1 "k8s.io/api/core/v1"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/platform"
	"tazlab.net/castle/ci/cluster/run"
)

// check looks at all that could speak against it, before anything is changed, and tells all of it at once.
func (l *leaving) check(ctx context.Context) error {
	return l.Step("checks", func(func(string)) (bool, error) {
		var against []error
		for _, look := range []func(context.Context) error{l.podsHaveRoom, l.etcdStays, l.apiStays, l.podsCome, l.volumesStay, l.nothingElseChanges} {
			against = append(against, look(ctx))
		}
		if err := errors.Join(against...); err != nil {
			return true, fmt.Errorf("%w\nnothing was changed", err)
		}
		return true, nil
	})
}

// podsHaveRoom fails where no other node could take the pods.
func (l *leaving) podsHaveRoom(context.Context) error {
	if node := l.node(); node != nil && kube.RefusesPods(node) || node == nil && l.controlPlane() {
		return nil // there are none but those of DaemonSets
	}
	if slices.ContainsFunc(l.nodes, func(node corev1.Node) bool {
		return node.Name != l.Node && kube.TakesPods(&node)
	}) {
		return nil
	}
	return fmt.Errorf("%s is the last node that is Ready and takes pods: bring up another one first", l.Node)
}

// etcdStays fails where etcd would have no quorum without the node. One that has left already can do no harm.
func (l *leaving) etcdStays(context.Context) error {
	without := l.etcd.Without(l.Node)
	if without.Member == nil {
		return nil
	}
	if err := without.Holds(); err != nil {
		return fmt.Errorf("without %s, %w: %s", l.Node, err, l.etcd)
	}
	return nil
}

// apiStays fails where no other control plane serves the API, which the virtual IP could move to.
func (l *leaving) apiStays(ctx context.Context) error {
	if !l.controlPlane() {
		return nil
	}
	var silent []string
	for name, vm := range l.known {
		if name == l.Node || vm.Role != config.RoleControlPlane {
			continue
		}
		err := l.api.Serves(ctx, net.JoinHostPort(vm.Address.String(), "6443"))
		if err == nil {
			return nil
		}
		silent = append(silent, fmt.Sprintf("%s: %v", name, kube.Brief(err)))
	}
	slices.Sort(silent)
	return fmt.Errorf("no other control plane than %s serves the API, and the virtual IP would have nowhere to go: %s", l.Node, strings.Join(silent, "; "))
}

// podsCome fails where a pod on the node would be lost for good.
func (l *leaving) podsCome(ctx context.Context) error {
	if l.node() == nil {
		return nil
	}
	orphans, err := l.api.Orphans(ctx, l.Node)
	if err == nil && len(orphans) > 0 {
		err = fmt.Errorf("nobody would make these pods on %s again: %s; delete them, or give each a controller", l.Node, strings.Join(orphans, ", "))
	}
	return err
}

// nothingElseChanges fails where OpenTofu would do anything else than remove this one VM.
func (l *leaving) nothingElseChanges(ctx context.Context) error {
	vm, inState := l.known[l.Node]
	if !inState {
		return nil
	}
	plan, err := l.Plan(ctx, run.OneNode{Name: l.Node, ID: vm.ID})
	if err != nil {
		return err
	}
	var others []string
	for _, change := range plan.ResourceChanges {
		actions := change.Change.Actions
		if actions.NoOp() || actions.Read() || actions.Delete() && slices.Equal(platform.ConsequencesOf(&tfjson.Plan{ResourceChanges: []*tfjson.ResourceChange{change}}).Removed, []string{l.Node}) {
			continue
		}
		others = append(others, change.Address)
	}
	if len(others) > 0 {
		return fmt.Errorf("OpenTofu would not only remove %s, but change %s", l.Node, strings.Join(others, ", "))
	}
	return nil
}
