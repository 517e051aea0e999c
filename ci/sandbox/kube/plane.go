//go:build linux

package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"tazlab.net/castle/ci/sandbox/kube/agent"
	"tazlab.net/castle/ci/sandbox/kube/podnet"
	"tazlab.net/castle/ci/sandbox/kube/relay"
	"tazlab.net/castle/ci/sandbox/kube/services"
	"tazlab.net/castle/ci/sandbox/longhorn"
	"tazlab.net/castle/ci/sandbox/profile"
)

// kubernetesPort is where the world finds the API, on each control plane's address and on the virtual IP.
const kubernetesPort = 6443

// Plane is one cluster. Its methods may be called at the same time; each returns when what it says is so.
type Plane struct {
	options    Options
	memory     string // a folder
	images     *agent.Images
	publishing sync.Mutex

	mu      sync.Mutex
	closed  bool
	config  Config // of the first control plane; zero before
	known   map[string]netip.Addr
	control *controlPlane // nil while no control plane runs
	stop    context.CancelFunc
	doors   map[string]*door // by control plane that runs
	holder  string           // of the virtual IP; "" when nobody has it
	vip     *relay.Relay
	nodes   map[string]Node // that are up

	// Made with the first control plane.
	network *podnet.Network
	agent   *agent.Agent
	proxy   *services.Proxy
	dns     *services.DNS
	storage *longhorn.Longhorn
}

// New makes a plane with nothing running. etcd's data of a former life is found when a control plane comes up.
func New(options Options) (*Plane, error) {
	if err := options.Binaries.check(); err != nil {
		return nil, err
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(options.Folder, 0o755); err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(options.Folder)
	if err != nil {
		return nil, err
	}
	options.Folder = folder
	images, err := agent.OpenImages(disksOf(folder), options.pull())
	if err != nil {
		return nil, err
	}
	return &Plane{
		options: options, memory: inMemory(folder), images: images, known: map[string]netip.Addr{}, doors: map[string]*door{}, nodes: map[string]Node{},
	}, nil
}

// disksOf is where the nodes' disks are in a plane's folder.
func disksOf(folder string) string { return filepath.Join(folder, "agent") }

func (p *Plane) log() *slog.Logger { return p.options.Log }

// ControlPlaneUp starts the static pods of a control plane, whose API answers at <address>:6443 when it returns. The
// first one starts etcd and the API server with what etcd had; the others join it. Every node must say the same
// about the cluster, until Erase.
func (p *Plane) ControlPlaneUp(ctx context.Context, name string, address netip.Addr, config Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.New("the sandbox's Kubernetes is closed")
	}
	if p.doors[name] != nil {
		return nil
	}
	if err := config.validate(); err != nil {
		return fmt.Errorf("control plane %s: %w", name, err)
	}
	if p.agent != nil && !config.PKI.equal(p.config.PKI) {
		return fmt.Errorf("control plane %s has the certificates of another cluster than the one that runs here", name)
	}
	new := p.known[name] != address
	p.known[name] = address
	if err := p.prepare(config); err != nil {
		return err
	}
	var err error
	if p.control == nil {
		err = p.start(ctx)
	} else if new {
		err = p.control.serveNames(ctx, p.names())
	}
	if err != nil {
		delete(p.known, name)
		return fmt.Errorf("start the control plane on %s: %w", name, err)
	}
	if err := p.network.AddAddress(address); err != nil {
		return err
	}
	door, err := openDoor(netip.AddrPortFrom(address, kubernetesPort))
	if err != nil {
		return err
	}
	p.doors[name] = door
	p.publish()
	return p.openVIP()
}

var apiServer = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), apiPort)

// ControlPlaneDown ends the static pods of a control plane as a power cut does. With the last one, etcd and the API
// server end.
func (p *Plane) ControlPlaneDown(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	door := p.doors[name]
	if door == nil {
		return
	}
	door.Close()
	delete(p.doors, name)
	if p.holder == name {
		p.closeVIP()
	}
	if len(p.doors) == 0 {
		p.halt()
		return
	}
	p.publish()
}

// VIP gives the virtual IP to a control plane, or with "" to nobody. Its API answers there while that one runs.
// Connections through the former holder are cut.
func (p *Plane) VIP(holder string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if holder == p.holder {
		return nil
	}
	p.closeVIP()
	p.holder = holder
	return p.openVIP()
}

// NodeUp powers a node on; its kubelet registers it when an API server answers.
func (p *Plane) NodeUp(n Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[n.Name] = n
	if p.agent != nil {
		p.agent.NodeUp(n)
	}
}

// NodeDown cuts a node's power: its pods' processes are gone when it returns, and the node is not ready a moment later.
func (p *Plane) NodeDown(name string) {
	p.mu.Lock()
	delete(p.nodes, name)
	nodes := p.agent
	p.mu.Unlock()
	if nodes != nil {
		nodes.NodeDown(name)
	}
}

// NodeErased cuts a node's power and empties its disk: the images it pulled are gone.
func (p *Plane) NodeErased(name string) error {
	p.NodeDown(name)
	return p.images.Forget(name)
}

// Pull pulls an image onto a node's disk, where pods find it later, and returns when it is there.
func (p *Plane) Pull(ctx context.Context, node, image string) error {
	_, err := p.images.Pull(ctx, node, image, func() {})
	return err
}

// Erase ends everything and removes etcd's data and the nodes' disks, as when the last control plane's disk is deleted.
// Logs of the control plane stay.
func (p *Plane) Erase() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shutdown()
	p.config, p.agent, p.proxy, p.network = Config{}, nil, nil, nil
	clear(p.known)
	clear(p.nodes)
	var failures []error
	for _, folder := range []string{filepath.Join(p.options.Folder, "etcd"), disksOf(p.options.Folder)} {
		failures = append(failures, os.RemoveAll(folder))
	}
	return errors.Join(append(failures, p.images.ForgetAll())...)
}

// Close ends everything as a power cut does; a new Plane on the same folder goes on from there.
func (p *Plane) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.shutdown()
}

// Admin is how an administrator inside the sandbox's namespace reaches the API server, past all addresses; nil while
// none runs.
func (p *Plane) Admin() *rest.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.control == nil {
		return nil
	}
	return rest.CopyConfig(p.control.admin)
}

// Kubeconfig is an administrator's kubeconfig for the virtual IP. It fails before the first control plane has run.
func (p *Plane) Kubeconfig() ([]byte, error) {
	p.mu.Lock()
	config := p.config
	p.mu.Unlock()
	if !config.VIP.IsValid() {
		return nil, errors.New("no control plane has run yet")
	}
	ca, err := authority(config.PKI.ClusterCA, "cluster")
	if err != nil {
		return nil, err
	}
	client, err := issue(ca, identities["admin"][0], identities["admin"][1:], clientUsage)
	if err != nil {
		return nil, err
	}
	return clientcmd.Write(kubeconfig(fmt.Sprintf("https://%s:%d", config.VIP, kubernetesPort), config.PKI.ClusterCA.Crt, client))
}

// prepare makes the networks and the nodes' agent, once.
func (p *Plane) prepare(config Config) error {
	p.config = config
	if p.agent != nil {
		return nil
	}
	if err := os.MkdirAll(p.memory, 0o700); err != nil {
		return err
	}
	kubelet, err := config.kubeletTLS()
	if err != nil {
		return err
	}
	network, err := podnet.Open(config.PodSubnet, config.ServiceSubnet)
	if err != nil {
		return err
	}
	// The agent and the proxy ask each other; the proxy is there before the agent has a pod.
	var proxy *services.Proxy
	storage := longhorn.New(p.log())
	nodes, err := agent.New(agent.Options{
		Folder: disksOf(p.options.Folder), Pulled: p.images, Memory: filepath.Join(p.memory, "pods"), Network: network, Images: p.options.Binaries.Images, Profile: p.options.Profile,
		Service: config.service(), DNS: config.dns(), Domain: config.domain(),
		KubernetesVersion: p.options.KubernetesVersion, OSImage: p.options.OSImage, Log: p.log(), KubeletTLS: kubelet,
		Ends:          storage.Ends,
		ServesWebhook: func(pod *corev1.Pod) bool { return proxy.ServesWebhook(pod) },
		Changed:       func() { proxy.Changed() },
		Began:         func() { go p.endAPIServer() },
	})
	if err != nil {
		return err
	}
	proxy = services.New(services.Options{
		Local: func(address netip.Addr, local bool) error {
			if local {
				return network.AddAddress(address)
			}
			return network.RemoveAddress(address)
		},
		Holds: nodes.Holds, Serves: p.options.WebhookServes, KubeProxy: config.KubeProxy, Log: p.log(),
	})
	dns := services.ServeDNS(proxy, netip.AddrPortFrom(config.dns(), 53), config.domain())
	p.network, p.agent, p.proxy, p.dns, p.storage = network, nodes, proxy, dns, storage
	for _, n := range p.nodes {
		nodes.NodeUp(n)
	}
	return nil
}

// names are what the API server's certificate is valid for.
func (p *Plane) names() []string {
	names := p.config.names()
	for _, address := range p.known {
		names = append(names, address.String())
	}
	return names
}

// start brings up the processes and connects the nodes.
func (p *Plane) start(ctx context.Context) error {
	control, err := startControlPlane(ctx, p, p.config, p.names())
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(control.client, 0)
	objects, err := dynamic.NewForConfig(control.admin)
	if err == nil {
		err = errors.Join(p.agent.Connect(control.client, factory), p.proxy.Connect(factory),
			p.storage.Connect(following, longhorn.Client{Typed: control.client, Dynamic: objects}, factory))
	}
	if err != nil {
		stop()
		control.stop()
		return err
	}
	factory.Start(following.Done())
	p.control = control
	p.stop = func() {
		stop()
		factory.Shutdown()
	}
	go func() {
		factory.WaitForCacheSync(following.Done())
		if following.Err() == nil {
			p.agent.Forgotten()
		}
	}()
	return nil
}

// endAPIServer is the fault apiserver-ends: the kubelet restarts a static pod whose manifest has changed, which Talos renders anew for a changed
// configuration (ControlPlaneStaticPodController in internal/app/machined/pkg/controllers/k8s/control_plane_static_pod.go of v1.13). An API server
// refuses connections as soon as it is told, and then waits for its watches, until the kubelet loses its patience. The one process stands behind
// all control planes, as where there is one.
func (p *Plane) endAPIServer() {
	grace, wanted := p.options.Profile.Faults.Duration(profile.APIEnds, 10*time.Second)
	if !wanted {
		return
	}
	p.mu.Lock()
	control := p.control
	p.mu.Unlock()
	if control != nil {
		p.log().Info("the API server ends", "within", grace)
		control.end("kube-apiserver", grace)
	}
}

// halt ends the processes; nodes that are up go on without an API server.
func (p *Plane) halt() {
	if p.control == nil {
		return
	}
	p.agent.Disconnect()
	p.stop() // first, or every watch would complain
	p.control.stop()
	p.control = nil
}

func (p *Plane) shutdown() {
	for name, door := range p.doors {
		door.Close()
		delete(p.doors, name)
	}
	p.closeVIP()
	if p.agent != nil {
		p.agent.Close()
		p.proxy.Close()
		p.dns.Close()
	}
	p.halt()
	if err := os.RemoveAll(p.memory); err != nil {
		p.log().Warn("the keys of the control plane cannot be removed", "error", err)
	}
}

// openVIP gives the virtual IP's address to this machine while its holder runs.
func (p *Plane) openVIP() error {
	if p.vip != nil || p.doors[p.holder] == nil {
		return nil
	}
	if err := p.network.AddAddress(p.config.VIP); err != nil {
		return err
	}
	door, err := relay.Listen(netip.AddrPortFrom(p.config.VIP, kubernetesPort), apiServer)
	if err != nil {
		return err
	}
	p.vip = door
	return nil
}

func (p *Plane) closeVIP() {
	p.holder = ""
	if p.vip == nil {
		return
	}
	p.vip.Close()
	p.vip = nil
	if err := p.network.RemoveAddress(p.config.VIP); err != nil {
		p.log().Error("the virtual IP cannot be taken away", "error", err)
	}
}
