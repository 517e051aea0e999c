//go:build linux

package talosnodes

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/siderolabs/discovery-api/api/v1alpha1/server/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// discoveryHost is who Talos asks by default for the other machines of its cluster.
const discoveryHost = "discovery.talos.dev"

// discovery tells machines of each other, by the API that siderolabs/discovery-api v0.1.8 defines. What a machine tells of itself is encrypted
// with a key of its cluster, and is forgotten when the world ends: the time that it is said to be good for is not played.
type discovery struct {
	pb.UnimplementedClusterServer

	mutex    sync.Mutex
	clusters map[string]*discovered
}

// discovered is one cluster.
type discovered struct {
	affiliates map[string]*pb.Affiliate
	changed    chan struct{} // closed and replaced at every change
}

func newDiscovery() *grpc.Server {
	server := grpc.NewServer()
	pb.RegisterClusterServer(server, &discovery{clusters: map[string]*discovered{}})
	return server
}

// of is a cluster, under the lock.
func (d *discovery) of(id string) *discovered {
	if d.clusters[id] == nil {
		d.clusters[id] = &discovered{affiliates: map[string]*pb.Affiliate{}, changed: make(chan struct{})}
	}
	return d.clusters[id]
}

func (c *discovered) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// list are the affiliates, none of which is ever changed, only replaced.
func (c *discovered) list() []*pb.Affiliate {
	var list []*pb.Affiliate
	for _, id := range slices.Sorted(maps.Keys(c.affiliates)) {
		list = append(list, c.affiliates[id])
	}
	return list
}

func (d *discovery) Hello(ctx context.Context, request *pb.HelloRequest) (*pb.HelloResponse, error) {
	if request.GetClusterId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no cluster is named")
	}
	response := &pb.HelloResponse{}
	if caller, ok := peer.FromContext(ctx); ok {
		if at, err := netip.ParseAddrPort(caller.Addr.String()); err == nil {
			response.ClientIp = at.Addr().Unmap().AsSlice()
		}
	}
	return response, nil
}

func (d *discovery) AffiliateUpdate(_ context.Context, request *pb.AffiliateUpdateRequest) (*pb.AffiliateUpdateResponse, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	c := d.of(request.GetClusterId())
	affiliate := &pb.Affiliate{Id: request.GetAffiliateId(), Data: request.GetAffiliateData()}
	if old := c.affiliates[affiliate.Id]; old != nil {
		affiliate.Endpoints = slices.Clone(old.Endpoints)
		if request.AffiliateData == nil {
			affiliate.Data = old.Data
		}
	}
	for _, endpoint := range request.GetAffiliateEndpoints() {
		if !slices.ContainsFunc(affiliate.Endpoints, func(known []byte) bool { return slices.Equal(known, endpoint) }) {
			affiliate.Endpoints = append(affiliate.Endpoints, endpoint)
		}
	}
	c.affiliates[affiliate.Id] = affiliate
	c.wake()
	return &pb.AffiliateUpdateResponse{}, nil
}

func (d *discovery) AffiliateDelete(_ context.Context, request *pb.AffiliateDeleteRequest) (*pb.AffiliateDeleteResponse, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	c := d.of(request.GetClusterId())
	delete(c.affiliates, request.GetAffiliateId())
	c.wake()
	return &pb.AffiliateDeleteResponse{}, nil
}

func (d *discovery) List(_ context.Context, request *pb.ListRequest) (*pb.ListResponse, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return &pb.ListResponse{Affiliates: d.of(request.GetClusterId()).list()}, nil
}

// Watch sends all affiliates first, and then what changes.
func (d *discovery) Watch(request *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	var sent map[string]*pb.Affiliate // nil before the first
	for {
		d.mutex.Lock()
		c := d.of(request.GetClusterId())
		now, changed, list := maps.Clone(c.affiliates), c.changed, c.list()
		d.mutex.Unlock()
		fresh, gone := &pb.WatchResponse{}, &pb.WatchResponse{Deleted: true}
		for _, affiliate := range list {
			if sent[affiliate.Id] != affiliate {
				fresh.Affiliates = append(fresh.Affiliates, affiliate)
			}
		}
		for id := range sent {
			if now[id] == nil {
				gone.Affiliates = append(gone.Affiliates, &pb.Affiliate{Id: id})
			}
		}
		if sent == nil || len(fresh.Affiliates) > 0 {
			if err := stream.Send(fresh); err != nil {
				return err
			}
		}
		if len(gone.Affiliates) > 0 {
			if err := stream.Send(gone); err != nil {
				return err
			}
		}
		sent = now
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}
