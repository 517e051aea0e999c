package config

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/base/strictyaml"
)

// grammar is how a description is read.
var grammar = strictyaml.Schema{Facts: facts, Texts: map[reflect.Type]strictyaml.Text{
	addressType: {What: "one address such as 192.168.1.10", Read: func(text string) (any, string) { return asAny(readAddress(text)) }},
	prefixType:  {What: "one subnet such as 192.168.1.0/24", Read: func(text string) (any, string) { return asAny(readPrefix(text)) }},
}, Wholes: map[reflect.Type]strictyaml.Whole{
	manifestType: func(node *yaml.Node) (any, string) { return asAny(readManifest(node)) },
	patchType:    func(node *yaml.Node) (any, string) { return asAny(readPatch(node)) },
}}

var (
	addressType  = reflect.TypeFor[netip.Addr]()
	prefixType   = reflect.TypeFor[netip.Prefix]()
	patchType    = reflect.TypeFor[Patch]()
	manifestType = reflect.TypeFor[Manifest]()
)

func asAny[T any](value T, problem string) (any, string) { return value, problem }

// ReadAddress is an address as a description has it; the error says what is wrong with the text, and the fix.
func ReadAddress(text string) (netip.Addr, error) { return orError(readAddress(text)) }

// ReadSubnet is a subnet as a description has it; the error says what is wrong with the text, and the fix.
func ReadSubnet(text string) (netip.Prefix, error) { return orError(readPrefix(text)) }

func orError[T any](value T, problem string) (T, error) {
	if problem != "" {
		return value, errors.New(problem)
	}
	return value, nil
}

var leadingZero = regexp.MustCompile(`(^|\.)0+([0-9])`)

// ipv6 says whether a text names something of IPv6: an address, a subnet, a range, or a list with one of these.
func ipv6(text string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("-/, ", r) }), func(part string) bool {
		address, err := netip.ParseAddr(part)
		return err == nil && !address.Is4()
	})
}

func noIPv6(text string) string {
	return fmt.Sprintf("%s is of IPv6, which is not supported yet; write IPv4", text)
}

// readAddress gives an address or what is wrong with the text.
func readAddress(text string) (netip.Addr, string) {
	address, err := netip.ParseAddr(text)
	switch {
	case err == nil && address.Is4():
		return address, ""
	case ipv6(text):
		return netip.Addr{}, noIPv6(text)
	}
	if before, _, ok := strings.Cut(text, "/"); ok {
		if _, err := netip.ParseAddr(before); err == nil {
			return netip.Addr{}, fmt.Sprintf("%s is a subnet; did you mean %s?", text, before)
		}
	}
	if without := leadingZero.ReplaceAllString(text, "$1$2"); without != text {
		if _, err := netip.ParseAddr(without); err == nil {
			return netip.Addr{}, fmt.Sprintf("%s has leading zeros; did you mean %s?", text, without)
		}
	}
	return netip.Addr{}, fmt.Sprintf("%q is not an address; write four numbers from 0 to 255, such as 192.168.1.10", text)
}

// readPrefix gives a subnet or what is wrong with the text.
func readPrefix(text string) (netip.Prefix, string) {
	prefix, err := netip.ParsePrefix(text)
	switch {
	case ipv6(text):
		return netip.Prefix{}, noIPv6(text)
	case err == nil && prefix.Masked() != prefix:
		return netip.Prefix{}, fmt.Sprintf("%s has host bits set; did you mean %s?", text, prefix.Masked())
	case err == nil:
		return prefix, ""
	}
	if address, err := netip.ParseAddr(text); err == nil && address.Is4() {
		return netip.Prefix{}, fmt.Sprintf("%s has no length; did you mean %s?", text, netip.PrefixFrom(address, 24).Masked())
	}
	return netip.Prefix{}, fmt.Sprintf("%q is not a subnet; write it as 192.168.1.0/24", text)
}

// span is a run of addresses, both ends included.
type span struct{ first, last netip.Addr }

func prefixSpan(p netip.Prefix) span {
	return span{p.Masked().Addr(), lastAddress(p)}
}

func (s span) contains(a netip.Addr) bool { return !a.Less(s.first) && !s.last.Less(a) }

func (s span) overlaps(o span) bool { return !s.last.Less(o.first) && !o.last.Less(s.first) }

func number(a netip.Addr) uint32 {
	bytes := a.As4()
	return binary.BigEndian.Uint32(bytes[:])
}

func address(n uint32) netip.Addr {
	var bytes [4]byte
	binary.BigEndian.PutUint32(bytes[:], n)
	return netip.AddrFrom4(bytes)
}

func hostMask(p netip.Prefix) uint32 { return uint32(1<<(32-p.Bits()) - 1) }

func lastAddress(p netip.Prefix) netip.Addr {
	return address(number(p.Masked().Addr()) | hostMask(p))
}

// moved is the address with the subnet's network part and its own host part.
func moved(a netip.Addr, p netip.Prefix) netip.Addr {
	return address(number(p.Masked().Addr()) | number(a)&hostMask(p))
}

// readPool gives the addresses of one entry of the load balancer's pool, or what is wrong with the text.
func readPool(text string) (span, string) {
	if ipv6(text) {
		return span{}, noIPv6(text)
	}
	if strings.Contains(text, "/") {
		prefix, problem := readPrefix(text)
		if problem != "" {
			return span{}, problem
		}
		return prefixSpan(prefix), ""
	}
	first, last, ok := strings.Cut(text, "-")
	if !ok {
		if a, err := netip.ParseAddr(text); err == nil {
			return span{}, fmt.Sprintf("%s is one address; write it as %s/32 or as a range", text, a)
		}
		return span{}, fmt.Sprintf("%q is no range; write 192.168.1.220-192.168.1.239 or 192.168.1.224/28", text)
	}
	from, problem := readAddress(strings.TrimSpace(first))
	if problem != "" {
		return span{}, problem
	}
	to, problem := readAddress(strings.TrimSpace(last))
	if problem != "" {
		return span{}, problem
	}
	if to.Less(from) {
		return span{}, fmt.Sprintf("%s is reversed; did you mean %s-%s?", text, to, from)
	}
	return span{from, to}, ""
}
