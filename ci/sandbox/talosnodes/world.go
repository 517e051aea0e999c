//go:build linux

package talosnodes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/vishvananda/netlink"
	"google.golang.org/grpc"

	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/sandbox/talosnodes/inside"
)

// Options are what a World is opened with.
type Options struct {
	Dir        string       // holds the nodes' disks and logs; what the world itself puts there is made anew
	Talos      string       // the folder of the built recipe talos, or of the unpacked official image
	Containerd string       // that of containerd, which the official image has itself
	Etcd       string       // the program, for the image that nodes pull
	Node       string       // the program castle-node
	Kubernetes string       // the version that configurations name: a kubelet's image has it as its tag
	Components *Components  // nil: nodes have no Kubernetes, and a stand-in for the kubelet
	Address    netip.Prefix // the world's in the nodes' network: what nodes have as gateway and DNS
	Pods       []Image      // what pods run beside what a machine configuration starts
}

// World is the nodes' surroundings: what they ask, and the network between them.
type World struct {
	Options
	images      []Image
	bridge      netlink.Link
	cgroup      string            // the nodes' common control group
	hierarchies map[string]string // those of version 1 by their controllers, where nodes need them
	limited     bool              // root may not all
	authority   *x509.CertificateAuthority
	closes      []func()

	mutex sync.Mutex
	nodes map[string]*node
	cards int
}

// Open makes the surroundings of nodes in the network namespace of the calling process. Close ends the nodes, too.
func Open(options Options) (*World, error) {
	if err := options.Missing(); err != nil {
		return nil, err
	}
	w := &World{Options: options, nodes: map[string]*node{}}
	if err := w.open(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *World) open() (err error) {
	if w.authority, err = newAuthority(); err != nil {
		return err
	}
	if w.limited, err = inside.Limited(); err != nil {
		return err
	}
	if w.images, err = w.Images(); err != nil {
		return err
	}
	for _, folder := range []string{w.system(), w.path("registry")} {
		if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
			return err
		}
	}
	if err := w.makeGroup(); err != nil {
		return err
	}
	if w.Components != nil {
		if err := w.makeHierarchies(filepath.Base(w.cgroup)); err != nil {
			return err
		}
		back, err := keepTunables(settingsFolder, keptSettings)
		if err != nil {
			return err
		}
		w.onClose(func() { _ = back() })
	}
	if err := w.makeSystem(w.system(), w.authority.CrtPEM, w.limited || w.Components != nil); err != nil {
		return fmt.Errorf("put Talos's root file system together: %w", err)
	}
	if w.bridge, err = openBridge(w.Address); err != nil {
		return fmt.Errorf("the nodes' network: %w", err)
	}
	w.onClose(func() { _ = netlink.LinkDel(w.bridge) })
	return w.serve()
}

// serve answers what nodes ask: names, and by HTTPS the registry and the discovery service.
func (w *World) serve() error {
	hosts := []string{discoveryHost}
	for _, image := range w.images {
		host, err := image.host()
		if err != nil {
			return err
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	stop, err := names{hosts: hosts, address: w.Address.Addr()}.serve(w.Address.Addr())
	if err != nil {
		return err
	}
	w.onClose(stop)
	images, err := registry.New(registry.Options{Root: w.path("registry")})
	if err != nil {
		return err
	}
	own, err := certificate(w.authority, hosts)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", netip.AddrPortFrom(w.Address.Addr(), 443).String())
	if err != nil {
		return err
	}
	discovery := newDiscovery()
	w.onClose(discovery.Stop)
	server := &http.Server{
		Handler: either(discovery, images), TLSConfig: &tls.Config{Certificates: []tls.Certificate{own}},
		ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), // nodes that are cut off
	}
	w.onClose(func() { _ = server.Close() })
	go func() { _ = server.ServeTLS(listener, "", "") }() // ends by Close
	for _, image := range w.images {
		if err := image.push(w.here()); err != nil {
			return err
		}
	}
	return nil
}

// either tells the discovery service's calls from the registry's.
func either(discovery *grpc.Server, images http.Handler) http.Handler {
	return http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.Header.Get("Content-Type"), "application/grpc") {
			discovery.ServeHTTP(answer, request)
			return
		}
		images.ServeHTTP(answer, request)
	})
}

// here leads to the world whatever host is asked, as its DNS leads the nodes.
func (w *World) here() *http.Transport {
	transport := believing(w.authority)
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, netip.AddrPortFrom(w.Address.Addr(), 443).String())
	}
	return transport
}

// Close cuts the power of all nodes and ends their surroundings. The disks stay.
func (w *World) Close() error {
	var failed []error
	for _, name := range w.running() {
		failed = append(failed, w.PowerCut(name))
	}
	for i := len(w.closes) - 1; i >= 0; i-- {
		w.closes[i]()
	}
	w.closes = nil
	return errors.Join(failed...)
}

func (w *World) onClose(close func()) { w.closes = append(w.closes, close) }

func (w *World) path(name string) string { return filepath.Join(w.Dir, name) }
func (w *World) system() string          { return w.path("system") }

// controllers are those that containers of nodes are limited by.
var controllers = []string{"cpu", "cpuset", "io", "memory", "pids"}

// groups are the control groups of worlds.
const groups = "castle-nodes-*"

// abandoned is the age from which the group of a world without any process is nobody's: longer than a world takes to start its first node.
const abandoned = time.Hour

// sweep removes the groups of worlds that were killed.
func sweep(pattern string, now time.Time) {
	all, err := filepath.Glob(pattern)
	if err != nil {
		return // the pattern is ours
	}
	for _, group := range all {
		events, err := os.ReadFile(filepath.Join(group, "cgroup.events"))
		if err != nil || !strings.Contains(string(events), "populated 0\n") {
			continue
		}
		if about, err := os.Stat(group); err == nil && now.Sub(about.ModTime()) > abandoned {
			_ = removeGroup(group) // or the next world does
			hierarchies, _ := filepath.Glob(filepath.Join(hierarchiesFolder, "*", filepath.Base(group)))
			for _, one := range hierarchies {
				_ = removeGroup(one)
			}
		}
	}
}

// makeGroup is the control group of all nodes.
func (w *World) makeGroup() error {
	mounted, err := cgroups()
	if err != nil {
		return err
	}
	sweep(filepath.Join(mounted, groups), time.Now())
	if w.cgroup, err = os.MkdirTemp(mounted, groups); err != nil {
		return err
	}
	w.onClose(func() { _ = removeGroup(w.cgroup) })
	return delegate(w.cgroup)
}

// controllersOf are those that a group of cgroup 2 may limit by.
func controllersOf(group string) ([]string, error) {
	there, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	return strings.Fields(string(there)), err
}

// delegate lets a group's own groups be limited by what the group may limit.
func delegate(group string) error {
	there, err := controllersOf(group)
	if err != nil {
		return err
	}
	for _, controller := range controllers {
		if !slices.Contains(there, controller) {
			continue
		}
		if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return err
		}
	}
	return nil
}
