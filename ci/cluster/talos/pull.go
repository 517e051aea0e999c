package talos

import (
	"context"
	"fmt"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc/codes"
)

// Pull has a configured node pull an image for its pods, from the moment that its container runtime runs, and returns when
// the image is there. The machine gives up when the caller does.
func (a *Access) Pull(ctx context.Context, name, image string) error {
	at := slices.IndexFunc(a.nodes, func(n *node) bool { return n.Name == name })
	if at < 0 {
		return fmt.Errorf("%s has no node %s", a.cluster.Name, name)
	}
	for {
		//lint:ignore SA1019 its successor is not in Talos 1.12; Talos 1.13 has both
		err := a.nodes[at].client.ImagePull(ctx, common.ContainerdNamespace_NS_CRI, image)
		switch {
		case err == nil:
			return nil
		case client.StatusCode(err) != codes.Unavailable: // the container runtime or the whole machine starts, or starts again
			return fmt.Errorf("%s does not pull %s: %w", name, image, err)
		}
		if ended := pause(ctx, a.options.Poll); ended != nil {
			return fmt.Errorf("%s does not pull %s: %w; last seen: %s", name, image, ended, unwrapped(err))
		}
	}
}

// AwaitEtcd returns once the etcd of a control plane has its image, and with it data: from then on what else is pulled keeps no cluster from being
// founded.
func (a *Access) AwaitEtcd(ctx context.Context) error {
	for {
		views := observe(a.controlPlanes(), func(n *node) view { return n.etcd(ctx, false) })
		if slices.ContainsFunc(views, func(v view) bool { return v.err == nil && v.data == dataFull }) {
			return nil
		}
		if err := pause(ctx, a.options.Poll); err != nil {
			return err
		}
	}
}
