//go:build linux

package services

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// ttl is in seconds. Names change when a layer is installed, so nobody should remember them for long.
const ttl = 5

// DNSService is the Service of the cluster's DNS in kube-system, as Talos and others call it.
const DNSService = "kube-dns"

// DNS answers for the names of Services, in place of CoreDNS: while one of its pods is ready. Otherwise its address refuses, as kube-proxy's rules
// have it for a Service without endpoints.
type DNS struct {
	proxy   *Proxy
	address netip.AddrPort
	domain  string // "cluster.local."

	mu      sync.Mutex
	servers []*dns.Server // while it answers
	closed  bool
}

// ServeDNS answers on an address, by UDP and TCP, for the services that the proxy knows.
func ServeDNS(proxy *Proxy, address netip.AddrPort, domain string) *DNS {
	d := &DNS{proxy: proxy, address: address, domain: dns.Fqdn(domain)}
	proxy.mu.Lock()
	proxy.dns = d
	proxy.mu.Unlock()
	proxy.Changed()
	return d
}

// answer makes it answer, or no more.
func (d *DNS) answer(answers bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !answers:
		d.silence()
		return nil
	case d.closed || len(d.servers) > 0:
		return nil
	}
	packets, err := net.ListenPacket("udp4", d.address.String())
	if err != nil {
		return fmt.Errorf("serve DNS: %w", err)
	}
	streams, err := net.Listen("tcp4", d.address.String())
	if err != nil {
		packets.Close()
		return fmt.Errorf("serve DNS: %w", err)
	}
	d.servers = []*dns.Server{
		{PacketConn: packets, Handler: d, ReadTimeout: 2 * time.Second},
		{Listener: streams, Handler: d, ReadTimeout: 2 * time.Second},
	}
	for _, server := range d.servers {
		go func() { _ = server.ActivateAndServe() }()
	}
	return nil
}

// silence stops answering; mu is held.
func (d *DNS) silence() {
	for _, server := range d.servers {
		if server.PacketConn != nil {
			server.PacketConn.Close()
		}
		if server.Listener != nil {
			server.Listener.Close()
		}
	}
	d.servers = nil
}

// Close stops answering for good.
func (d *DNS) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.silence()
}

// ServeDNS answers one question.
func (d *DNS) ServeDNS(w dns.ResponseWriter, request *dns.Msg) {
	reply := new(dns.Msg).SetReply(request)
	reply.Authoritative = true
	if len(request.Question) == 1 {
		question := request.Question[0]
		addresses, known := d.lookup(strings.ToLower(question.Name))
		if !known {
			reply.Rcode = dns.RcodeNameError
		}
		if question.Qtype == dns.TypeA {
			for _, address := range addresses {
				reply.Answer = append(reply.Answer, &dns.A{
					Hdr: dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl},
					A:   net.IP(address.AsSlice()),
				})
			}
		}
	}
	_ = w.WriteMsg(reply)
}

// lookup finds <service>.<namespace>.svc.<domain>: the service's address, or those of its endpoints where it has none.
func (d *DNS) lookup(name string) (addresses []netip.Addr, known bool) {
	prefix, ok := strings.CutSuffix(name, ".svc."+d.domain)
	if !ok {
		return nil, false
	}
	parts := strings.Split(prefix, ".")
	now := d.proxy.known.Load()
	if len(parts) != 2 || now == nil {
		return nil, false
	}
	service, err := now.services.Services(parts[1]).Get(parts[0])
	if err != nil {
		return nil, false
	}
	if cluster, _ := addressesOf(service); len(cluster) > 0 {
		return cluster, true
	}
	of := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name})
	found, _ := now.slices.EndpointSlices(service.Namespace).List(of)
	for _, slice := range found {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
				continue
			}
			for _, text := range endpoint.Addresses {
				if address, err := netip.ParseAddr(text); err == nil && address.Is4() {
					addresses = append(addresses, address)
				}
			}
		}
	}
	return addresses, true
}
