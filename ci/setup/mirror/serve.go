package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"tazlab.net/castle/ci/base/registry"
)

// DefaultAddr is where Serve listens, and what an engine on the same machine is pointed at.
const DefaultAddr = "127.0.0.1:5000"

// ServeOptions say what to serve and where.
type ServeOptions struct {
	Cache string // the folder that Build fills
	Addr  string // host:port; "" means DefaultAddr, port 0 any free one
	Log   io.Writer
	// Ready is called once with the address, as soon as it answers.
	Ready func(net.Addr)
}

// registryHandler is the registry kept in a mirror's cache.
func registryHandler(cache string, readOnly bool, log io.Writer) (http.Handler, error) {
	if log == nil {
		log = io.Discard
	}
	handler, err := registry.New(registry.Options{
		Root: filepath.Join(cache, "registry"), ReadOnly: readOnly, ErrorLog: stdlog.New(log, "", 0),
	})
	if err != nil {
		return nil, fmt.Errorf("the mirror's registry: %w", err)
	}
	return handler, nil
}

// Serve serves the stand-ins in the cache over plain HTTP as a registry mirror, for reading only, until ctx ends; that is
// no error. A Build that runs meanwhile shows at once.
func Serve(ctx context.Context, opts ServeOptions) error {
	handler, err := registryHandler(opts.Cache, true, opts.Log)
	if err != nil {
		return err
	}
	addr := opts.Addr
	if addr == "" {
		addr = DefaultAddr
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("serve the mirror: %s is in use, maybe by another mirror; stop that one or choose another address: %w", addr, err)
	}
	if err != nil {
		return fmt.Errorf("serve the mirror: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	say(opts.Log, "serving the mirror on %s", listener.Addr())
	if opts.Ready != nil {
		opts.Ready(listener.Addr())
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serve the mirror: %w", err)
	case <-ctx.Done():
	}
	// Downloads under way get a moment; an engine would ask again anyway.
	shut, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(shut); err != nil {
		_ = server.Close()
	}
	return nil
}
