package talos

import (
	"context"
	"net"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client/dialer"
)

// unheard is for how long a machine may leave what was sent to it unacknowledged: then it was switched off, and has nothing to do with who answers at its
// address next. The kernel would go on for a quarter of an hour. gRPC's own keepalive is no help, since Talos's servers take more than one ping
// in five minutes for an attack.
const unheard = 10 * time.Second

// Reach connects through the proxy that the environment names, and keeps to the context's deadline also while the proxy is
// silent. machinery's own dialer waits for the proxy's answer without one, and a proxy that meets a machine just as it
// restarts can take minutes to give up: all that time nothing else would be tried.
func Reach(ctx context.Context, address string) (net.Conn, error) {
	type result struct {
		connection net.Conn
		err        error
	}
	done := make(chan result, 1)
	go func() {
		connection, err := dialer.DynamicProxyDialer(ctx, address)
		done <- result{connection, err}
	}()
	select {
	case r := <-done:
		if r.err == nil {
			endWhenUnheard(r.connection)
		}
		return r.connection, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.connection.Close() // too late for anybody
			}
		}()
		return nil, ctx.Err()
	}
}
