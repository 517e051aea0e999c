package forward

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// acceptPause is the rest after a failed accept, so that running out of file descriptors does not become a busy loop.
const acceptPause = 50 * time.Millisecond

// Dial makes the connection that a client's is joined with. Of the client's it reads nothing away.
type Dial func(ctx context.Context, client *net.TCPConn) (net.Conn, error)

// Serve joins each TCP connection that the listener accepts with the one that dial makes for it; where dial fails, the client's is
// reset. The end of ctx closes the listener and cuts what is open. Whoever closes the listener before that stops only new
// connections. Serve returns when nothing of it runs any more.
func Serve(ctx context.Context, listener net.Listener, dial Dial) {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	defer listener.Close()
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			open.Go(func() { carry(ctx, conn.(*net.TCPConn), dial) })
		case errors.Is(err, net.ErrClosed):
			return
		default:
			slog.WarnContext(ctx, "forward: accept failed", "address", listener.Addr().String(), "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(acceptPause):
			}
		}
	}
}

func carry(ctx context.Context, client *net.TCPConn, dial Dial) {
	defer cutWith(ctx, client)()
	target, err := dial(ctx, client)
	if err != nil {
		reset(client)
		return
	}
	Join(ctx, client, target.(*net.TCPConn))
}

// Join copies between two connections, both ways, until both sides have said all they had to say, one of them breaks, or ctx
// ends, and closes them.
func Join(ctx context.Context, one, other *net.TCPConn) {
	defer cutWith(ctx, one)()
	defer cutWith(ctx, other)()
	var back sync.WaitGroup
	back.Go(func() { pump(one, other) })
	pump(other, one)
	back.Wait()
}

// pump copies one direction. The end of the data is passed on by closing only the writing half, so that the answer to a
// request which ends with its connection still arrives; a broken connection breaks the other one too.
func pump(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		reset(to)
		reset(from)
		return
	}
	_ = to.CloseWrite() // fails only when the connection is gone, which the other direction sees as well
}

// reset closes with RST instead of FIN: the peer must see a failure, not an empty answer.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// cutWith resets conn when ctx ends, or closes it when the returned function is called, whichever comes first.
func cutWith(ctx context.Context, conn *net.TCPConn) func() {
	release := context.AfterFunc(ctx, func() { reset(conn) })
	return func() {
		release()
		_ = conn.Close()
	}
}
