package talos

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ImagePull pulls an image for pods. It ends without one when the caller leaves or the power is cut.
func (*api) ImagePull(ctx context.Context, in *machineapi.ImagePullRequest) (*machineapi.ImagePullResponse, error) {
	m := target(ctx)
	if in.GetNamespace() != common.ContainerdNamespace_NS_CRI {
		return nil, status.Errorf(codes.InvalidArgument, "the simulated machine pulls nothing into %s", in.GetNamespace())
	}
	m.fleet.mu.Lock()
	ready, conf := m.ready, m.conf
	m.fleet.mu.Unlock()
	if !ready {
		return nil, status.Error(codes.Unavailable, "error connecting to containerd: dial unix /run/containerd/containerd.sock: connect: no such file or directory")
	}
	if err := m.fleet.Cluster.Pull(ctx, m.node(conf), in.GetReference()); err != nil {
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		return nil, err
	}
	return &machineapi.ImagePullResponse{Messages: []*machineapi.ImagePull{{}}}, nil
}
