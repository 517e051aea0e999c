//go:build linux

package talosnodes

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// names answers for the hosts that the world plays, with its own address; every other name is not there, as without a way out.
type names struct {
	hosts   []string
	address netip.Addr
}

func (n names) ServeDNS(answer dns.ResponseWriter, question *dns.Msg) {
	reply := new(dns.Msg).SetReply(question)
	for _, asked := range question.Question {
		switch {
		case !slices.Contains(n.hosts, strings.ToLower(strings.TrimSuffix(asked.Name, "."))):
			reply.Rcode = dns.RcodeNameError
		case asked.Qtype == dns.TypeA:
			reply.Answer = append(reply.Answer, &dns.A{A: n.address.AsSlice(), Hdr: dns.RR_Header{
				Name: asked.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60,
			}})
		}
	}
	_ = answer.WriteMsg(reply) // who went away asks again
}

// serveDNS answers by UDP until the connection is closed.
func (n names) serve(at netip.Addr) (stop func(), err error) {
	connection, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 53)))
	if err != nil {
		return nil, err
	}
	server := &dns.Server{PacketConn: connection, Handler: n}
	go func() { _ = server.ActivateAndServe() }() // ends by the close
	return func() { _ = connection.Close() }, nil
}
