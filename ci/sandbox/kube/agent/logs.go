//go:build linux

package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"tazlab.net/castle/ci/sandbox/kube/relay"
)

const (
	// kubeletPort is where the API server finds a kubelet.
	kubeletPort = 10250
	// followPeriod is how often a log that is followed is looked at.
	followPeriod = 200 * time.Millisecond
)

// serveLogs answers "kubectl logs" for a node until its power is cut. Of a kubelet's server, it is the only part: there is
// no shell in a container to execute anything in.
func (a *Agent) serveLogs(n *node) {
	if a.options.KubeletTLS == nil {
		return
	}
	place := netip.AddrPortFrom(n.Address, kubeletPort).String()
	listener, err := (&net.ListenConfig{Control: relay.FreeBind}).Listen(n.context, "tcp4", place)
	if err != nil {
		a.options.Log.Warn("a kubelet cannot serve logs", "node", n.Name, "error", err)
		return
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) { a.log(n, w, r) })
	server := &http.Server{
		Handler: routes, ReadHeaderTimeout: callTimeout, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return n.context },
	}
	context.AfterFunc(n.context, func() { server.Close() })
	go func() { _ = server.Serve(tls.NewListener(listener, a.options.KubeletTLS)) }()
}

// log sends what a container of the node has printed.
func (a *Agent) log(n *node, w http.ResponseWriter, r *http.Request) {
	if n.kubelet.isAway() {
		panic(http.ErrAbortHandler) // nobody listens there
	}
	of := a.workerOf(n, r.PathValue("namespace"), r.PathValue("pod"))
	if of == nil {
		http.Error(w, "no such pod on node "+n.Name, http.StatusNotFound)
		return
	}
	file, err := os.Open(filepath.Join(of.folder, "logs", filepath.Base(r.PathValue("container"))+".log"))
	if err != nil { // nothing to prove, or not started yet
		return
	}
	defer file.Close()
	if lines, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil {
		if err := seekLines(file, lines); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	flush := http.NewResponseController(w).Flush
	ticker := time.NewTicker(followPeriod)
	defer ticker.Stop()
	for {
		if _, err := io.Copy(w, file); err != nil || r.URL.Query().Get("follow") != "true" || flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-of.done:
			_, _ = io.Copy(w, file)
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (a *Agent) workerOf(n *node, namespace, name string) *worker {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.workers {
		if pod := w.object(); w.node == n && pod.Namespace == namespace && pod.Name == name {
			return w
		}
	}
	return nil
}

// seekLines goes to the last lines of a file, which is of bounded size.
func seekLines(file *os.File, lines int) error {
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	at := len(data)
	for line := 0; line < lines && at > 0; line++ {
		at = bytes.LastIndexByte(data[:at-1], '\n') + 1
	}
	_, err = file.Seek(int64(at), io.SeekStart)
	return err
}
