package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/discovery"

	"tazlab.net/castle/ci/cluster/gates"
)

// apiDeadline is how long the API may take to answer before destroy says that it does not.
const apiDeadline = 15 * time.Second

// Destroy removes the layers in reverse order and makes sure that nothing is left: every state empty, every VM gone.
// confirm must be the cluster's name.
func (c *Cluster) Destroy(ctx context.Context, confirm string) (*Result, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	if confirm != c.description.Name {
		return nil, fmt.Errorf("destroy removes cluster %s and all that is stored in it: confirm with --confirm %s", c.description.Name, c.description.Name)
	}
	return c.record(ctx, "destroy", func(ctx context.Context, run *run) error {
		access, err := c.secretsLayer(ctx, run, false)
		if err != nil {
			return err
		}
		if err := c.reachable(ctx, access); err != nil {
			return err
		}
		if err := c.removeUnfinished(ctx, run, access); err != nil {
			return c.platformFailure(ctx, run, err)
		}
		if err := c.terragrunt(ctx, run, access, "destroy", "-auto-approve"); err != nil {
			return err
		}
		if err := c.gone(ctx, access); err != nil {
			return err
		}
		return forgetUnfinished(c.State)
	})
}

// reachable refuses to start where the layers in the cluster could not be removed: their providers would wait for ever
// for an API that is not there.
func (c *Cluster) reachable(ctx context.Context, access *access) error {
	var inCluster []string
	for _, layer := range layers[2:] {
		resources, err := c.resources(ctx, access, layer.name)
		if err != nil {
			return err
		}
		if len(resources) > 0 {
			inCluster = append(inCluster, layer.name)
		}
	}
	if len(inCluster) == 0 {
		return nil
	}
	kube, err := gates.NewKube(access.kube.Host, access.kube.CA, access.kube.Cert, access.kube.Key)
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(kube.Config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apiDeadline)
	defer cancel()
	if err := client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("the API at %s does not answer, and the layers %s are in it: start the cluster's VMs and try again: %w",
			access.kube.Host, strings.Join(inCluster, ", "), err)
	}
	return nil
}

// gone checks what destroy has promised, by looking.
func (c *Cluster) gone(ctx context.Context, access *access) error {
	var left []error
	for _, layer := range layers {
		resources, err := c.resources(ctx, access, layer.name)
		if err != nil {
			return err
		}
		if len(resources) > 0 {
			left = append(left, fmt.Errorf("the state of layer %s still holds %s", layer.name, strings.Join(resources, ", ")))
		}
	}
	vms, err := c.vms(ctx, access)
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
