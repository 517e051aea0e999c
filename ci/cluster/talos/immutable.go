package talos

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
)

// LastingError is a node whose cluster has something for good that the description would change.
type LastingError struct {
	Node  string
	Field string // of cluster.yaml
	Was   string
	Would string
}

func (e *LastingError) Error() string {
	return fmt.Sprintf("%s of %s is %s, and cluster.yaml would make it %s: a cluster has that for good, and this node was not changed; take it back in cluster.yaml, or destroy and create",
		e.Field, e.Node, e.Was, e.Would)
}

// lasting compares what a cluster gets when it begins and keeps for good. Talos takes another one at once and without a word: CanApplyImmediate in
// internal/app/machined/pkg/runtime/v1alpha1/v1alpha1_runtime.go of v1.13.9 asks for a restart neither for volumes nor for the cluster's networks. At its next
// start the node would not open its disk (internal/app/machined/pkg/controllers/block/internal/volumes), and pods and Services would be of two networks.
func (n *node) lasting(ctx context.Context, wanted []byte) error {
	running, err := safe.StateGetByID[*configres.MachineConfig](ctx, n.client.COSI, configres.ActiveID)
	if err != nil {
		return fmt.Errorf("%s does not show its configuration: %w", n.Name, err)
	}
	next, err := configloader.NewFromBytes(wanted)
	if err != nil {
		return fmt.Errorf("the configuration of %s: %w", n.Name, err)
	}
	var changed []error
	for _, of := range lastingFields {
		if was, would := of.value(running.Provider()), of.value(next); was != would {
			changed = append(changed, &LastingError{Node: n.Name, Field: of.field, Was: was, Would: would})
		}
	}
	return errors.Join(changed...)
}

var lastingFields = []struct {
	field string
	value func(config.Provider) string
}{
	{"talos.diskEncryption.ephemeral", func(c config.Provider) string {
		volume, _ := c.Volumes().ByName(constants.EphemeralPartitionLabel)
		if encryption := volume.Encryption(); encryption != nil {
			return encryption.Provider().String()
		}
		return block.EncryptionProviderNone.String()
	}},
	{"kubernetes.podSubnet", func(c config.Provider) string { return strings.Join(c.Cluster().Network().PodCIDRs(), ", ") }},
	{"kubernetes.serviceSubnet", func(c config.Provider) string { return strings.Join(c.Cluster().Network().ServiceCIDRs(), ", ") }},
}
