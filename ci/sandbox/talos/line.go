package talos

import (
	"net"
	"sync"
)

// line is a machine's port, whose connections can be cut, as when the machine loses its power. By itself gRPC's server would
// wait two minutes for a connection that is still in its handshake.
type line struct {
	net.Listener

	mutex sync.Mutex
	open  map[*call]bool
	down  bool
}

func newLine(listener net.Listener) *line { return &line{Listener: listener, open: map[*call]bool{}} }

// Accept is the listener's, and remembers the connection.
func (l *line) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &call{Conn: connection, line: l}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.down {
		_ = connection.Close() // whoever reads from it is told
		return c, nil
	}
	l.open[c] = true
	return c, nil
}

// cut ends all connections, and any that comes later.
func (l *line) cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.down = true
	for c := range l.open {
		_ = c.Conn.Close() // the other side sees it
	}
	clear(l.open)
}

// call is one connection of a line.
type call struct {
	net.Conn
	line *line
}

// Close hangs up.
func (c *call) Close() error {
	c.line.mutex.Lock()
	delete(c.line.open, c)
	c.line.mutex.Unlock()
	return c.Conn.Close()
}
