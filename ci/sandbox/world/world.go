//go:build linux

// Package world is the proving ground put together: simulated Proxmox, Talos machines and Infisical, a real Kubernetes on
// these machines, a Git server and a registry, in one network namespace and one folder. What is in the folder outlives the
// process; nothing else does. It never talks to anything outside the namespace.
package world

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/siderolabs/crypto/x509"

	"tazlab.net/castle/ci/base/filelock"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/sandbox/infisical"
	"tazlab.net/castle/ci/sandbox/kube"
	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/sandbox/proxmox"
	"tazlab.net/castle/ci/sandbox/proxy"
	"tazlab.net/castle/ci/sandbox/talos"
)

// Options are what a world is served with.
type Options struct {
	Cluster  string // folder with cluster.yaml and world.yaml
	Dir      string // folder of the world
	Binaries string // folder with the programs that run for real, named as in programs
	Listen   string // address of the proxy into the world, ":3128"
	Profile  profile.Profile
	Nodes    *Nodes // real ones, of Talos in containers; nil: they are simulated
	Log      io.Writer
}

// programs are the real ones, by their names in Options.Binaries.
func programs(folder string) kube.Binaries {
	file := func(name string) string { return filepath.Join(folder, name) }
	return kube.Binaries{
		Etcd: file("etcd"), APIServer: file("kube-apiserver"),
		ControllerManager: file("kube-controller-manager"), Scheduler: file("kube-scheduler"),
		Images: map[string]string{
			kube.ImageMetalLBController:      file("metallb-controller"),
			kube.ImageExternalSecrets:        file("external-secrets"),
			kube.ImageSourceController:       file("source-controller"),
			kube.ImageKustomizeController:    file("kustomize-controller"),
			kube.ImageHelmController:         file("helm-controller"),
			kube.ImageNotificationController: file("notification-controller"),
		},
	}
}

// world is what Serve starts, in order, and ends in reverse.
type world struct {
	Options
	cluster *config.Cluster
	seed    *Seed
	places  places
	ca      *x509.CertificateAuthority // signs the Git server's certificate; as old as the world
	network *network
	log     *slog.Logger

	closes []func()
	failed chan error
}

// Serve powers the world on as a power cut, or nothing, left it, and serves it until ctx ends. The proxy answers once
// everything that was running runs again.
func Serve(ctx context.Context, options Options) (err error) {
	w := &world{Options: options, failed: make(chan error, 8), log: slog.New(slog.NewTextHandler(options.Log, nil))}
	defer func() {
		for i := len(w.closes) - 1; i >= 0; i-- {
			w.closes[i]()
		}
	}()
	up := w.endUnlessUp()
	defer up()
	if err := w.open(); err != nil {
		return err
	}
	if err := w.powerOn(ctx); err != nil {
		return err
	}
	if err := w.serveProxy(); err != nil {
		return err
	}
	up()
	w.log.Info("the world is on", "cluster", w.cluster.Name, "proxy", w.Listen)
	select {
	case <-ctx.Done():
		return nil
	case err := <-w.failed:
		return err
	}
}

func (w *world) open() (err error) {
	if w.cluster, err = config.Load(w.Cluster); err != nil {
		return err
	}
	if w.seed, err = readSeed(w.Cluster); err != nil {
		return err
	}
	if w.places, err = placesOf(w.cluster); err != nil {
		return err
	}
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		return err
	}
	unlock, err := filelock.Try(filepath.Join(w.Dir, "lock"))
	if err != nil {
		return fmt.Errorf("another world runs in %s: %w", w.Dir, err)
	}
	w.onClose(func() { _ = unlock() })
	if w.ca, err = openAuthority(w.Dir); err != nil {
		return err
	}
	w.network, err = openNetwork(w.cluster.Network.Subnet)
	return err
}

func (w *world) onClose(close func()) { w.closes = append(w.closes, close) }

func (w *world) powerOn(ctx context.Context) error {
	if err := w.serveInfisical(); err != nil {
		return err
	}
	if err := w.serveGit(ctx); err != nil {
		return err
	}
	if err := w.serveRegistry(ctx); err != nil {
		return err
	}
	if err := w.serveStranger(); err != nil {
		return err
	}
	return w.serveMachines(ctx)
}

func (w *world) serveInfisical() error {
	if !w.cluster.Secrets.Infisical.Has() {
		return nil
	}
	place := w.cluster.Secrets.Infisical
	server, err := infisical.Open(filepath.Join(w.Dir, "infisical.json"), withReaders(w.seed.Infisical, place), w.Profile)
	if err != nil {
		return err
	}
	if err := server.Put(place.Project, place.Environment, place.FluxPath, secrets.GitOpsCA, string(w.ca.CrtPEM)); err != nil {
		return fmt.Errorf("put the Git server's CA into the simulated Infisical: %w", err)
	}
	return w.serve(w.places.infisical, nil, &http.Server{Handler: server})
}

// withReaders has each project of a world.yaml that is older than the identities which go into a cluster know those that castle derives then.
func withReaders(seed infisical.Seed, place config.Infisical) infisical.Seed {
	seed.Projects = slices.Clone(seed.Projects)
	for i, project := range seed.Projects {
		if len(project.Clients) != 1 {
			continue
		}
		own := project.Clients[0]
		readers := secrets.SandboxReaders(own.ID, own.Secret)
		seed.Projects[i].Clients = []infisical.Client{own,
			{ID: readers[secrets.InfisicalFluxClientID], Secret: readers[secrets.InfisicalFluxClientSecret], TokenTTL: own.TokenTTL,
				Permissions: []infisical.Permission{infisical.Reading(place.Environment, place.FluxPath)}},
			{ID: readers[secrets.InfisicalWorkloadsClientID], Secret: readers[secrets.InfisicalWorkloadsClientSecret], TokenTTL: own.TokenTTL,
				Permissions: []infisical.Permission{infisical.Reading(place.Environment, place.WorkloadsPath)}},
		}
	}
	return seed
}

func (w *world) serveMachines(ctx context.Context) error {
	if w.Nodes != nil {
		return w.serveNodes()
	}
	machines := &machines{log: w.log, bare: !w.cluster.MakesMachines()}
	// Nothing pulls before the machines are there.
	runtime := &runtime{has: w.network.has, endpoints: func(node, registry string) []url.URL { return machines.fleet.Endpoints(node, registry) }}
	plane, err := kube.New(kube.Options{
		Folder: filepath.Join(w.Dir, "kubernetes"), Binaries: programs(w.Binaries), Profile: w.Profile,
		KubernetesVersion: w.cluster.Kubernetes.Version, OSImage: "Talos (" + w.cluster.Talos.Version + ")", Log: w.log,
		WebhookServes: w.webhookServes,
		Exists:        runtime.exists,
	})
	if err != nil {
		return err
	}
	w.onClose(plane.Close)
	machines.plane = plane
	var host *proxmox.Server
	options := talos.Options{
		Profile: w.Profile, Cluster: &kubernetes{plane: plane}, Listen: w.network.listen, State: filepath.Join(w.Dir, "disks.json"),
		Template: talos.Template{Talos: w.cluster.Talos.Version, Schematic: w.cluster.Talos.Schematic, Extensions: w.cluster.Talos.Extensions}, Log: w.log,
	}
	if w.cluster.MakesMachines() {
		// No machine is on before the host is there.
		options.Stopped = func(id int) { host.Stopped(id) }
	} else {
		options.Wiped = machines.wiped
	}
	if machines.fleet, err = talos.New(options); err != nil {
		return err
	}
	w.onClose(func() { _ = machines.fleet.Close() })
	_, noEtcd := os.Stat(filepath.Join(w.Dir, "kubernetes", "etcd"))
	running := 0
	if w.cluster.MakesMachines() {
		if host, err = w.openProxmox(machines); err != nil {
			return err
		}
		host.Resume()
		running = host.Running()
	} else {
		running = w.startMachines(machines)
	}
	if err := machines.awake(ctx, running, noEtcd == nil); err != nil {
		return err
	}
	if err := plane.DropLeases(ctx); err != nil {
		w.log.Warn("leases of a former life are left to run out", "error", err)
	}
	if host == nil {
		return nil
	}
	return w.serveProxmox(host)
}

// openProxmox is the host of machines, none of which has power yet.
func (w *world) openProxmox(machines proxmox.Machines) (*proxmox.Server, error) {
	host, err := proxmox.New(proxmox.Options{
		File: filepath.Join(w.Dir, "proxmox.json"), Profile: w.Profile, Machines: machines, Tokens: w.seed.Proxmox.Tokens,
		Nodes: w.hosts(), Storages: w.storages(), Privileges: map[string][]string{"/": hypervisor.Privileges()},
	})
	if err != nil {
		return nil, err
	}
	w.onClose(host.Close)
	return host, host.Seed(w.guests()...)
}

func (w *world) serveProxmox(host *proxmox.Server) error {
	certificate, err := w.proxmoxCertificate()
	if err != nil {
		return err
	}
	return w.serve(w.places.proxmox, certificate, host.HTTP())
}

// startMachines gives power to the machines that nobody makes, and says how many they are.
func (w *world) startMachines(all *machines) int {
	for _, machine := range w.seed.Machines {
		all.PowerOn(proxmox.VM{
			ID: machine.ID, Name: fmt.Sprintf("machine-%d", machine.ID), Address: netip.PrefixFrom(machine.Address, w.cluster.Network.Subnet.Bits()),
			Gateway: w.cluster.Network.Gateway, DNS: w.cluster.Network.DNS, Cores: 4, MemoryMiB: 8192,
		})
	}
	return len(w.seed.Machines)
}

// proxmoxCertificate is signed by an authority that stands beside the description, which names it: Proxmox has one of its own.
func (w *world) proxmoxCertificate() (*tls.Certificate, error) {
	var parts [2][]byte
	for i, name := range []string{proxmox.AuthorityFile, proxmox.AuthorityKeyFile} {
		data, err := os.ReadFile(filepath.Join(w.Cluster, name))
		if err != nil {
			return nil, fmt.Errorf("a sandbox needs %s and %s beside its cluster.yaml, as live/sandbox has them: %w", proxmox.AuthorityFile, proxmox.AuthorityKeyFile, err)
		}
		parts[i] = data
	}
	certificate, err := proxmox.Certificate(filepath.Join(w.Dir, proxmox.CertificateFile), parts[0], parts[1], w.hosts()[0])
	return &certificate, err
}

func (w *world) hosts() []proxmox.Node {
	var hosts []proxmox.Node
	for _, name := range w.seed.Proxmox.Nodes {
		hosts = append(hosts, proxmox.Node{Name: name, Address: w.places.proxmox.Addr()})
	}
	return hosts
}

// storageBytes is how large a storage of world.yaml is.
const storageBytes = 1 << 40

// storages are those of world.yaml, nil where it names none.
func (w *world) storages() []proxmox.Storage {
	var storages []proxmox.Storage
	for _, s := range w.seed.Proxmox.Storages {
		storages = append(storages, proxmox.Storage{ID: s.ID, Type: s.Type, Shared: s.Shared, Content: "images", Bytes: storageBytes})
	}
	return storages
}

// guests are the templates and other people's VMs that are there from the beginning.
func (w *world) guests() []proxmox.Guest {
	var guests []proxmox.Guest
	guest := func(t Template, template bool) {
		guests = append(guests, proxmox.Guest{Template: template, VM: proxmox.VM{
			ID: t.ID, Name: t.Name, Node: cmp.Or(t.Node, w.seed.Proxmox.Nodes[0]), Cores: 2, MemoryMiB: 2048,
			Disks: []proxmox.Disk{{Interface: "scsi0", Bytes: 10 << 30}},
		}})
	}
	for _, t := range w.seed.Proxmox.Templates {
		guest(t, true)
	}
	for _, t := range w.seed.Proxmox.Foreign {
		guest(t, false)
	}
	return guests
}

// webhookServes notes the moment from which a webhook answers: the latency of a gate is measured from there.
func (w *world) webhookServes(namespace, service string, at time.Time) {
	w.log.Info("webhook serves", "namespace", namespace, "service", service, "at", at.UTC().Format(time.RFC3339Nano))
}

// serve serves one of the world's services at its address, over TLS where it has a certificate.
func (w *world) serve(place netip.AddrPort, certificate *tls.Certificate, server *http.Server) error {
	listener, err := w.network.listen(place)
	if err != nil {
		return err
	}
	if certificate != nil {
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}}
	}
	server.ReadHeaderTimeout = time.Minute
	server.ErrorLog = log.New(io.Discard, "", 0) // clients that go away while they shake hands
	w.onClose(func() { _ = server.Close() })
	go func() {
		if certificate != nil {
			err = server.ServeTLS(listener, "", "")
		} else {
			err = server.Serve(listener)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			w.failed <- fmt.Errorf("serve %s: %w", place, err)
		}
	}()
	return nil
}

func (w *world) serveProxy() error {
	listener, err := net.Listen("tcp", w.Listen)
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		Handler: &proxy.Proxy{Networks: []netip.Prefix{w.cluster.Network.Subnet}}}
	w.onClose(func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			w.failed <- fmt.Errorf("serve the proxy: %w", err)
		}
	}()
	return nil
}
