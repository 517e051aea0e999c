package newcluster

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"tazlab.net/castle/ci/cluster/config"
)

// smallestSubnet is the length of the smallest subnet that a description may have.
const smallestSubnet = 28

// pool is how many addresses load balancers get, where there is room for them.
const pool = 20

// space is what the clusters of a repository have taken of a subnet, and of Proxmox's ids.
type space struct {
	subnet netip.Prefix
	taken  map[netip.Addr]bool
	ids    []config.Range
}

// spaceOf is what is left beside the other clusters and the addresses given.
func spaceOf(subnet netip.Prefix, others []*config.Cluster, given ...netip.Addr) *space {
	s := &space{subnet: subnet, taken: map[netip.Addr]bool{}}
	for _, address := range given {
		s.taken[address] = true
	}
	for _, other := range others {
		s.ids = append(append(s.ids, other.VMIDs), each(other.TemplateIDs())...)
		for _, address := range other.Addresses() {
			s.taken[address] = true
		}
	}
	return s
}

// at is an address of the subnet by its place in it.
func (s *space) at(offset int) netip.Addr {
	bytes := s.subnet.Masked().Addr().As4()
	binary.BigEndian.PutUint32(bytes[:], binary.BigEndian.Uint32(bytes[:])+uint32(offset))
	return netip.AddrFrom4(bytes)
}

// size is how many addresses the subnet has, the first and the last included.
func (s *space) size() int { return 1 << (32 - s.subnet.Bits()) }

// free says whether that many addresses from offset on are the subnet's, may be a host's, and are nobody's.
func (s *space) free(offset, count int) bool {
	if offset < 1 || offset+count > s.size()-1 {
		return false
	}
	for i := range count {
		if s.taken[s.at(offset+i)] {
			return false
		}
	}
	return true
}

// addresses finds room for the virtual IP, the nodes and the load balancers' pool, in this order. In a subnet of 256 addresses and more
// each begins at a multiple of ten, in the upper half first, since routers hand out the lower one.
func (s *space) addresses(nodes int) (endpoint netip.Addr, forNodes []netip.Addr, forPool string, err error) {
	begins, step, share := s.begins(), 1, min(pool, max(2, s.size()/4))
	if s.size() >= 256 {
		step = 10
	}
	for _, begin := range begins {
		behind := (nodes + 1 + step - 1) / step * step
		if !s.free(begin, nodes+1) || !s.free(begin+behind, share) {
			continue
		}
		for i := range nodes {
			forNodes = append(forNodes, s.at(begin+1+i))
		}
		return s.at(begin), forNodes, fmt.Sprintf("%s-%s", s.at(begin+behind), s.at(begin+behind+share-1)), nil
	}
	return endpoint, nil, "", fmt.Errorf("%s has no room for %d nodes, a virtual IP and %d addresses of load balancers in one piece beside the repository's other clusters: "+
		"give another --subnet", s.subnet, nodes, share)
}

// begins are the places that a cluster may begin at, the best first.
func (s *space) begins() []int {
	var list []int
	if s.size() < 256 {
		for offset := 2; offset < s.size(); offset++ {
			list = append(list, offset)
		}
		return list
	}
	for offset := 210; offset < s.size(); offset += 10 {
		list = append(list, offset)
	}
	for offset := 200; offset > 0; offset -= 10 {
		list = append(list, offset)
	}
	return list
}

// vmIDs finds a range of ids for that many nodes, with room for more, that neither another cluster nor a template has.
func (s *space) vmIDs(nodes int, templates []int) config.Range {
	const first, step = 401, 20
	ids := append(each(templates), s.ids...)
	length := step
	for length < 2*nodes { // room for as many again
		length += step
	}
next:
	for begin := first; ; begin += step {
		for _, other := range ids {
			if begin <= other.Last && other.First <= begin+length-1 {
				continue next
			}
		}
		return config.Range{First: begin, Last: begin + length - 1}
	}
}

// each is a range for each id.
func each(ids []int) []config.Range {
	var list []config.Range
	for _, id := range ids {
		list = append(list, config.Range{First: id, Last: id})
	}
	return list
}
