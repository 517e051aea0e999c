// Package destroy removes a cluster, layer by layer in reverse order, and looks whether anything is left. It refuses to begin
// what it could not end, and removes nothing that was not named.
package destroy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/discovery"

	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
)

// apiDeadline is how long the API may take to answer before destroy says that it does not.
const apiDeadline = 15 * time.Second

// Options say what is removed.
type Options struct {
	Confirm string // the cluster's name
}

// Execute removes the layers in reverse order and makes sure that nothing is left: every state empty, every VM gone.
func Execute(ctx context.Context, cluster *run.Cluster, options Options) (*run.Result, error) {
	if err := cluster.Load(); err != nil {
		return nil, err
	}
	if name := cluster.Description.Name; options.Confirm != name {
		return nil, fmt.Errorf("destroy removes cluster %s and all that is stored in it: confirm with --confirm %s", name, name)
	}
	cluster.Flags = []string{"--confirm", options.Confirm}
	return cluster.Execute(ctx, "destroy", func(ctx context.Context, record *run.Record) error {
		done, err := cluster.VerifyProxmox(ctx)
		if err != nil {
			return cluster.PlatformFailure(ctx, record, err)
		}
		defer done()
		access, err := cluster.SecretsLayer(ctx, record, false)
		if err != nil {
			return err
		}
		states, err := cluster.States(access)
		if err != nil {
			return err
		}
		if err := reachable(ctx, states, access); err != nil {
			return err
		}
		if err := cluster.RemoveUnfinished(ctx, record, access); err != nil {
			return cluster.PlatformFailure(ctx, record, err)
		}
		if _, err := cluster.OwnVMs(ctx, access); err != nil {
			return cluster.PlatformFailure(ctx, record, err)
		}
		if err := cluster.Terragrunt(ctx, record, access, "destroy", "-auto-approve"); err != nil {
			return err
		}
		if err := gone(ctx, cluster, states, access); err != nil {
			return err
		}
		return hypervisor.ForgetUnfinished(cluster.State)
	})
}

// reachable refuses to start where the layers in the cluster could not be removed: their providers would wait for ever
// for an API that is not there.
func reachable(ctx context.Context, states state.Store, access *run.Access) error {
	var inCluster []string
	for _, layer := range layers.InCluster() {
		resources, err := states.Resources(ctx, layer.Name)
		if err != nil {
			return err
		}
		if len(resources) > 0 {
			inCluster = append(inCluster, layer.Name)
		}
	}
	if len(inCluster) == 0 {
		return nil
	}
	connection, err := kube.Connect(access.Kube.Host, access.Kube.CA, access.Kube.Cert, access.Kube.Key)
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(connection.Config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apiDeadline)
	defer cancel()
	if err := client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("the API at %s does not answer, and the layers %s are in it: start the cluster's VMs and try again, or see what nuclear-wipe would remove without it: %w",
			access.Kube.Host, strings.Join(inCluster, ", "), err)
	}
	return nil
}

// gone checks what destroy has promised, by looking.
func gone(ctx context.Context, cluster *run.Cluster, states state.Store, access *run.Access) error {
	var left []error
	for _, layer := range layers.All {
		resources, err := states.Resources(ctx, layer.Name)
		if err != nil {
			return err
		}
		if len(resources) > 0 {
			left = append(left, fmt.Errorf("the state of layer %s still holds %s", layer.Name, strings.Join(resources, ", ")))
		}
	}
	machines := cluster.Hypervisor(access)
	defer machines.Close()
	vms, err := machines.VMs(ctx)
	if err != nil {
		return err
	}
	for _, vm := range vms {
		if vm.Ours {
			left = append(left, fmt.Errorf("VM %d %s on %s is still there", vm.ID, vm.Name, vm.Host))
		}
	}
	return errors.Join(left...)
}
