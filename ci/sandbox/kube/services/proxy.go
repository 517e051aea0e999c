//go:build linux

package services

import (
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"tazlab.net/castle/ci/sandbox/kube/relay"
)

// settle is how long changes are collected before the listeners follow them.
const settle = 5 * time.Millisecond

// Options configure a Proxy.
type Options struct {
	// Local makes an address local, or no more: a load balancer's address, which no route leads to.
	Local func(address netip.Addr, local bool) error
	// Holds tells whether the webhook of the pod at an address refuses although its endpoint is ready. Nil: it never does.
	Holds func(address netip.Addr) bool
	// Serves is called when a Service that a webhook configuration names begins to answer. Nil: nobody is told.
	Serves func(namespace, name string, at time.Time)
	// KubeProxy has Services carried only while a pod of kube-proxy runs.
	KubeProxy bool
	Log       *slog.Logger
}

// Proxy listens on service addresses.
type Proxy struct {
	options Options
	kick    chan struct{}
	done    chan struct{}

	known atomic.Pointer[known] // nil until connected

	mu       sync.Mutex
	relays   map[netip.AddrPort]*relay.Relay
	borrowed map[netip.Addr]bool // addresses made local
	serving  map[string]bool     // webhook services that answer
	dns      *DNS                // nil: nobody answers for the cluster's DNS
	closed   bool
}

// known is what the API server says. It has no lock, so that what Holds asks can be answered in the middle of a sync.
type known struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	pods     corelisters.PodLister
	webhooks *webhooks
	synced   []cache.InformerSynced
}

func (k *known) ready() bool {
	return !slices.ContainsFunc(k.synced, func(synced cache.InformerSynced) bool { return !synced() })
}

// speakers are the pods that announce addresses of load balancers, by the labels of MetalLB's chart.
var speakers = labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": "metallb", "app.kubernetes.io/component": "speaker"})

// kubeProxies are the pods that carry Services, by the label of Talos's manifest (kubeProxyTemplate in
// internal/app/machined/pkg/controllers/k8s/internal/k8stemplates/kube-proxy.go of v1.13.9).
var kubeProxies = labels.SelectorFromSet(labels.Set{"k8s-app": "kube-proxy"})

// carries tells whether a pod is one without which Services or load balancers do not answer.
func carries(object any) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && (speakers.Matches(labels.Set(pod.Labels)) || kubeProxies.Matches(labels.Set(pod.Labels)))
}

func (k *known) runs(pods labels.Selector) bool {
	list, err := k.pods.List(pods)
	return err == nil && slices.ContainsFunc(list, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
}

// announced tells whether addresses of load balancers are: without a speaker that runs, nobody answers for them (MetalLB v0.15.2,
// speaker/layer2_controller.go).
func (k *known) announced() bool { return k.runs(speakers) }

// carried tells whether Services are at all.
func (p *Proxy) carried(now *known) bool { return !p.options.KubeProxy || now.runs(kubeProxies) }

// New makes a proxy that knows no services yet.
func New(options Options) *Proxy {
	p := &Proxy{
		options: options, kick: make(chan struct{}, 1), done: make(chan struct{}),
		relays: map[netip.AddrPort]*relay.Relay{}, borrowed: map[netip.Addr]bool{}, serving: map[string]bool{},
	}
	go p.follow()
	return p
}

// Connect follows an API server from now on. The caller starts the factory. While no API server answers, the last known
// services stay.
func (p *Proxy) Connect(factory informers.SharedInformerFactory) error {
	services, endpoints := factory.Core().V1().Services(), factory.Discovery().V1().EndpointSlices()
	hooks := newWebhooks(factory)
	changed := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { p.Changed() },
		UpdateFunc: func(any, any) { p.Changed() },
		DeleteFunc: func(any) { p.Changed() },
	}
	informers := append([]cache.SharedIndexInformer{services.Informer(), endpoints.Informer()}, hooks.informers...)
	pods := factory.Core().V1().Pods()
	if _, err := pods.Informer().AddEventHandler(cache.FilteringResourceEventHandler{FilterFunc: carries, Handler: changed}); err != nil {
		return err
	}
	synced := []cache.InformerSynced{pods.Informer().HasSynced}
	for _, informer := range informers {
		if _, err := informer.AddEventHandler(changed); err != nil {
			return err
		}
		synced = append(synced, informer.HasSynced)
	}
	p.known.Store(&known{services.Lister(), endpoints.Lister(), pods.Lister(), hooks, synced})
	return nil
}

// Changed makes the proxy look again at what it listens on.
func (p *Proxy) Changed() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// ServesWebhook tells whether the pod is behind a Service that a webhook configuration names, or has a port whose name
// says so.
func (p *Proxy) ServesWebhook(pod *corev1.Pod) bool {
	if portNamed(pod) {
		return true
	}
	now := p.known.Load()
	if now == nil {
		return false
	}
	of, err := now.services.Services(pod.Namespace).List(labels.Everything())
	if err != nil {
		return false
	}
	return slices.ContainsFunc(of, func(service *corev1.Service) bool {
		return len(service.Spec.Selector) > 0 && now.webhooks.isWebhook(service) &&
			labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))
	})
}

// Close stops listening and cuts all connections.
func (p *Proxy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	close(p.done)
	for _, r := range p.relays {
		r.Close()
	}
	for address := range p.borrowed {
		_ = p.options.Local(address, false)
	}
}

func (p *Proxy) follow() {
	for {
		select {
		case <-p.done:
			return
		case <-p.kick:
		}
		time.Sleep(settle)
		p.sync()
	}
}

// sync makes the listeners what the services say.
func (p *Proxy) sync() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.known.Load()
	if p.closed || now == nil {
		return
	}
	if !now.ready() { // half a picture would refuse what answers
		time.AfterFunc(10*settle, p.Changed)
		return
	}
	wanted, balanced, serving := p.wanted(now)
	for address := range p.borrowed {
		if !balanced[address] {
			_ = p.options.Local(address, false)
			delete(p.borrowed, address)
		}
	}
	for address := range balanced {
		if p.borrowed[address] {
			continue
		}
		if err := p.options.Local(address, true); err != nil {
			p.options.Log.Error("a load balancer's address cannot be made local", "address", address, "error", err)
			continue
		}
		p.borrowed[address] = true
	}
	for address, open := range p.relays {
		if _, still := wanted[address]; !still {
			open.Refuse()
			delete(p.relays, address)
		}
	}
	for address, targets := range wanted {
		if open := p.relays[address]; open != nil {
			open.SetTargets(targets)
			continue
		}
		open, err := relay.Listen(address, targets...)
		if err != nil {
			p.options.Log.Error("a service address cannot be listened on", "address", address, "error", err)
			continue
		}
		p.relays[address] = open
	}
	if p.dns != nil {
		if err := p.dns.answer(p.resolves(now)); err != nil {
			p.options.Log.Error("the cluster's DNS cannot be served", "error", err)
		}
	}
	p.tell(serving)
}

// tell reports webhook services that began to answer.
func (p *Proxy) tell(serving map[string]*corev1.Service) {
	for name, service := range serving {
		if !p.serving[name] && p.options.Serves != nil {
			go p.options.Serves(service.Namespace, service.Name, time.Now())
		}
	}
	clear(p.serving)
	for name := range serving {
		p.serving[name] = true
	}
}

// wanted is the targets by the address to listen on, the addresses of load balancers, and the webhook services that
// have a target.
func (p *Proxy) wanted(now *known) (map[netip.AddrPort][]netip.AddrPort, map[netip.Addr]bool, map[string]*corev1.Service) {
	wanted, balanced, serving := map[netip.AddrPort][]netip.AddrPort{}, map[netip.Addr]bool{}, map[string]*corev1.Service{}
	if !p.carried(now) {
		return wanted, balanced, serving
	}
	all, err := now.services.List(labels.Everything())
	if err != nil {
		p.options.Log.Error("services cannot be listed", "error", err)
	}
	announced := now.announced()
	for _, service := range all {
		if service.Namespace == metav1.NamespaceSystem && service.Name == DNSService {
			continue // its pods are pretended, and DNS stands for them
		}
		cluster, outside := addressesOf(service)
		if !announced {
			outside = nil
		}
		for _, address := range outside {
			balanced[address] = true
		}
		for _, port := range service.Spec.Ports {
			if port.Protocol != corev1.ProtocolTCP && port.Protocol != "" {
				continue
			}
			targets := p.targets(now, service, port)
			if len(targets) == 0 {
				continue
			}
			for _, address := range append(cluster, outside...) {
				wanted[netip.AddrPortFrom(address, uint16(port.Port))] = targets
			}
			if now.webhooks.isWebhook(service) {
				serving[service.Namespace+"/"+service.Name] = service
			}
		}
	}
	return wanted, balanced, serving
}

// resolves tells whether a pod of the cluster's DNS is ready and can be reached.
func (p *Proxy) resolves(now *known) bool {
	if !p.carried(now) {
		return false
	}
	service, err := now.services.Services(metav1.NamespaceSystem).Get(DNSService)
	return err == nil && slices.ContainsFunc(service.Spec.Ports, func(port corev1.ServicePort) bool { return len(p.targets(now, service, port)) > 0 })
}

// addressesOf are the service's own and the load balancer's.
func addressesOf(service *corev1.Service) (cluster, outside []netip.Addr) {
	for _, text := range service.Spec.ClusterIPs {
		if address, err := netip.ParseAddr(text); err == nil && address.Is4() {
			cluster = append(cluster, address)
		}
	}
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			if address, err := netip.ParseAddr(ingress.IP); err == nil && address.Is4() {
				outside = append(outside, address)
			}
		}
	}
	return cluster, outside
}

// targets are the ready endpoints of a port that do not hold back.
func (p *Proxy) targets(now *known, service *corev1.Service, port corev1.ServicePort) []netip.AddrPort {
	of := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name})
	endpoints, err := now.slices.EndpointSlices(service.Namespace).List(of)
	if err != nil {
		return nil
	}
	webhook := p.options.Holds != nil && now.webhooks.isWebhook(service)
	var targets []netip.AddrPort
	for _, slice := range endpoints {
		number, ok := portNumber(slice, port.Name)
		if !ok || slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
				continue
			}
			for _, text := range endpoint.Addresses {
				address, err := netip.ParseAddr(text)
				if err != nil || webhook && p.options.Holds(address) {
					continue
				}
				targets = append(targets, netip.AddrPortFrom(address, number))
			}
		}
	}
	slices.SortFunc(targets, netip.AddrPort.Compare)
	return slices.Compact(targets)
}

func portNumber(slice *discoveryv1.EndpointSlice, name string) (uint16, bool) {
	for _, port := range slice.Ports {
		if port.Port != nil && (port.Name == nil && name == "" || port.Name != nil && *port.Name == name) {
			return uint16(*port.Port), true
		}
	}
	return 0, false
}
