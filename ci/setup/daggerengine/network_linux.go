package daggerengine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"time"
)

// networks is how many networks of engines' own there are to choose from, 10.87.0.0/16 and those after it.
const networks = 32

// network is what the engine joins its containers to. Each cache folder's engine has one of its own: two that shared
// one would both serve names at the same address, and only the first could.
type network struct {
	name string // the bridge's is this one and a 0
	hash [sha256.Size]byte
}

func (e Engine) network() (network, error) {
	folder, err := filepath.Abs(e.Cache)
	if err != nil {
		return network{}, err
	}
	hash := sha256.Sum256([]byte(folder))
	// A bridge's name has at most 15 characters.
	return network{name: "castle-" + hex.EncodeToString(hash[:3]), hash: hash}, nil
}

func (n network) bridge() string { return n.name + "0" }

// free chooses addresses beside those of this machine's interfaces.
func (n network) free() (netip.Prefix, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Prefix{}, err
	}
	var taken []netip.Prefix
	for _, address := range addresses {
		prefix, err := netip.ParsePrefix(address.String())
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("address of an interface: %w", err)
		}
		taken = append(taken, prefix)
	}
	return n.cidr(taken)
}

// cidr returns addresses that nothing on this machine has, as taken tells them. Where the search begins is the
// folder's own, so that two engines that start at one moment do not choose alike.
func (n network) cidr(taken []netip.Prefix) (netip.Prefix, error) {
	for i := range networks {
		second := 87 + (int(n.hash[0])+i)%networks
		candidate := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(second), 0, 0}), 16)
		if !overlapsAny(candidate, taken) {
			return candidate, nil
		}
	}
	return netip.Prefix{}, errors.New("no network for the engine's containers is free: each of 10.87.0.0/16 to 10.118.0.0/16 overlaps with one that an interface of this machine is in (`ip address`)")
}

func overlapsAny(candidate netip.Prefix, taken []netip.Prefix) bool {
	for _, prefix := range taken {
		if candidate.Overlaps(prefix) {
			return true
		}
	}
	return false
}

// remove takes away the bridge that the engine leaves behind.
func (n network) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = exec.CommandContext(ctx, "ip", "link", "delete", n.bridge()).Run()
}
