//go:build linux

package talosnodes

import (
	"context"
	"net"
	"testing"

	"github.com/siderolabs/discovery-api/api/v1alpha1/server/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func discoverer(t *testing.T) pb.ClusterClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newDiscovery()
	go func() { _ = server.Serve(listener) }() // ends by Stop
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return pb.NewClusterClient(connection)
}

func TestWhoWatchesIsToldOfTheMachinesOfItsClusterAlone(t *testing.T) {
	c := discoverer(t)
	tell := func(cluster, id, data string, endpoints ...string) {
		t.Helper()
		update := &pb.AffiliateUpdateRequest{ClusterId: cluster, AffiliateId: id}
		if data != "" {
			update.AffiliateData = []byte(data)
		}
		for _, endpoint := range endpoints {
			update.AffiliateEndpoints = append(update.AffiliateEndpoints, []byte(endpoint))
		}
		if _, err := c.AffiliateUpdate(t.Context(), update); err != nil {
			t.Fatal(err)
		}
	}
	tell("blue", "one", "1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch, err := c.Watch(ctx, &pb.WatchRequest{ClusterId: "blue"})
	if err != nil {
		t.Fatal(err)
	}
	seen := func(id, data string, endpoints int, deleted bool) {
		t.Helper()
		got, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Affiliates) != 1 || got.Affiliates[0].Id != id || string(got.Affiliates[0].Data) != data ||
			len(got.Affiliates[0].Endpoints) != endpoints || got.Deleted != deleted {
			t.Fatalf("it is %v, not %s with %s and %d endpoints", got, id, data, endpoints)
		}
	}
	seen("one", "1", 0, false)
	tell("green", "other", "x") // nobody who watches blue is told
	tell("blue", "two", "2", "a")
	seen("two", "2", 1, false)
	tell("blue", "two", "", "a", "b") // the data stay, the endpoints are added
	seen("two", "2", 2, false)
	if _, err := c.AffiliateDelete(t.Context(), &pb.AffiliateDeleteRequest{ClusterId: "blue", AffiliateId: "one"}); err != nil {
		t.Fatal(err)
	}
	seen("one", "", 0, true)
	list, err := c.List(t.Context(), &pb.ListRequest{ClusterId: "blue"})
	if err != nil || len(list.Affiliates) != 1 || list.Affiliates[0].Id != "two" {
		t.Errorf("%v: %v", list, err)
	}
}

func TestWhoWatchesAnEmptyClusterIsToldSo(t *testing.T) {
	watch, err := discoverer(t).Watch(t.Context(), &pb.WatchRequest{ClusterId: "blue"})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); err != nil || len(first.Affiliates) != 0 {
		t.Errorf("%v: %v", first, err)
	}
}

func TestACallerIsToldItsAddress(t *testing.T) {
	answer, err := discoverer(t).Hello(t.Context(), &pb.HelloRequest{ClusterId: "blue"})
	if err != nil || net.IP(answer.ClientIp).String() != "127.0.0.1" {
		t.Errorf("%v: %v", answer, err)
	}
}
