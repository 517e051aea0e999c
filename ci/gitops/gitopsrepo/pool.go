package gitopsrepo

import (
	"net/netip"
	"strings"
)

// span is a range of addresses, both ends included.
type span struct{ first, last netip.Addr }

// poolOf reads an entry of loadBalancer.pool, which the description has checked.
func poolOf(entry string) span {
	if first, last, is := strings.Cut(entry, "-"); is {
		return span{netip.MustParseAddr(strings.TrimSpace(first)), netip.MustParseAddr(strings.TrimSpace(last))}
	}
	prefix := netip.MustParsePrefix(entry)
	last := prefix.Addr()
	for next := last.Next(); next.IsValid() && prefix.Contains(next); next = next.Next() {
		last = next
	}
	return span{prefix.Addr(), last}
}

func (s span) contains(address netip.Addr) bool {
	return s.first.Compare(address) <= 0 && address.Compare(s.last) <= 0
}
