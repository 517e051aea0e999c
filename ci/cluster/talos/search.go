package talos

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

const (
	searchLimit = 1024 // addresses; a larger subnet is not searched
	searchWidth = 32   // at once
)

// strays looks at every address of the subnet that nobody declares for a Talos API in maintenance mode: a machine that waits
// for a configuration at an address that it should not have.
func (r *run) strays(ctx context.Context) []netip.Addr {
	subnet := r.cluster.Network.Subnet.Masked()
	if subnet.Addr().BitLen()-subnet.Bits() > 10 { // 2^10 is searchLimit
		return nil
	}
	declared := []netip.Addr{r.cluster.Endpoint, r.cluster.Network.Gateway}
	for _, n := range r.nodes {
		declared = append(declared, n.Address)
	}
	var (
		mu    sync.Mutex
		found []netip.Addr
		group errgroup.Group
	)
	group.SetLimit(searchWidth)
	for address, i := subnet.Addr(), 0; subnet.Contains(address) && i < searchLimit; address, i = address.Next(), i+1 {
		if slices.Contains(declared, address) {
			continue
		}
		group.Go(func() error {
			if r.waitsAt(ctx, address) {
				mu.Lock()
				found = append(found, address)
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // no one of them gives an error
	slices.SortFunc(found, netip.Addr.Compare)
	return found
}

func (r *run) waitsAt(ctx context.Context, address netip.Addr) bool {
	ctx, cancel := context.WithTimeout(ctx, r.options.SearchTimeout)
	defer cancel()
	anybody := &node{asked: &atomic.Bool{}, pin: &pin{}}
	c, err := anybody.insecureClient(net.JoinHostPort(address.String(), strconv.Itoa(r.options.Port)))
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }() // nothing is buffered
	_, err = c.Version(ctx)
	return err == nil || answered(err)
}
