package talos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"tazlab.net/castle/ci/sandbox/profile"
)

// Options are what a Fleet is made of.
type Options struct {
	Profile profile.Profile
	Cluster Cluster
	// Listen opens the port of the Talos API at a machine's address, which it may have to add to an interface first. Closing
	// the listener ends the API, not the machine.
	Listen   func(address netip.AddrPort) (net.Listener, error)
	State    string       // file of the disks; "" keeps them in memory
	Port     uint16       // of the Talos API; 50000
	Template Template     // what machines are cloned from
	Stopped  func(id int) // a machine switched itself off; may be nil
	// Wiped follows a reset after which a machine goes on without what it held of its cluster, once nothing of that runs on it any more; last
	// says that no control plane has anything of a cluster left. It may be nil.
	Wiped func(hostname string, last bool)
	Log   *slog.Logger // may be nil
}

// Fleet is all simulated machines.
type Fleet struct {
	Options
	ctx  context.Context
	stop context.CancelFunc
	wait sync.WaitGroup // the VIP's keeper

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	state    *state
	machines map[int]*machine // that are on
	noops    int              // bootstrap calls that have yet to do nothing
	holder   *machine         // of the VIP
	flapped  bool
	restarts bool // an API server has yet to restart
}

// New reads the disks; all machines are off.
func New(options Options) (*Fleet, error) {
	if options.Port == 0 {
		options.Port = 50000
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	state, err := load(options.State)
	if err != nil {
		return nil, err
	}
	f := &Fleet{Options: options, state: state, machines: map[int]*machine{}, changed: make(chan struct{}),
		noops: options.Profile.Faults.Count(profile.BootstrapNoop, 1), restarts: options.Profile.Faults.Has(profile.APIRestarts)}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.wait.Go(f.keepVIP)
	return f, nil
}

// Close cuts the power of all machines; their disks stay.
func (f *Fleet) Close() error {
	f.mu.Lock()
	var ids []int
	for id := range f.machines {
		ids = append(ids, id)
	}
	f.mu.Unlock()
	var wait sync.WaitGroup
	for _, id := range ids {
		wait.Go(func() { _ = f.PowerOff(id) }) // one that is off already is no mistake
	}
	wait.Wait()
	f.stop()
	f.wait.Wait()
	return nil
}

// PowerOn starts a machine with whatever its disk holds. One that is on already is left alone.
func (f *Fleet) PowerOn(vm VM) error {
	if !vm.Address.IsValid() {
		return fmt.Errorf("VM %d (%s) has no static address: set it on its cloud-init drive", vm.ID, vm.Name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		return errors.New("the simulated machines are closed")
	}
	if f.machines[vm.ID] != nil {
		return nil
	}
	f.haunt(vm.ID)
	m := newMachine(f, vm, f.clone(vm))
	f.machines[vm.ID] = m
	go m.run()
	return nil
}

// PowerOff cuts a machine's power and returns when it is off. One that is off already is left alone.
func (f *Fleet) PowerOff(id int) error {
	f.mu.Lock()
	m := f.machines[id]
	f.mu.Unlock()
	if m == nil {
		return nil
	}
	m.cut()
	<-m.done
	return nil
}

// Removed takes a machine and its disk away.
func (f *Fleet) Removed(id int) error {
	if err := f.PowerOff(id); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.state.Disks, id)
	f.state.forget()
	return f.saved()
}

// Running tells whether a machine is on.
func (f *Fleet) Running(id int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.machines[id] != nil
}

// Interfaces are what a guest agent reports: nothing before the machine's network is up.
func (f *Fleet) Interfaces(id int) []Interface {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.machines[id]
	if m == nil || !m.live.IsValid() {
		return nil
	}
	addresses := []netip.Prefix{netip.PrefixFrom(m.live, m.vm.Address.Bits())}
	if f.holder == m && m.conf != nil && m.conf.vip.IsValid() {
		addresses = append(addresses, netip.PrefixFrom(m.conf.vip, m.conf.vip.BitLen()))
	}
	return []Interface{
		{Name: "lo", MAC: "00:00:00:00:00:00", Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}},
		{Name: "eth0", MAC: m.vm.MAC, Addresses: addresses},
	}
}

// Stage is where a machine stands: "off", "booting", "maintenance", "configuring", "installing", "rebooting" or "running".
func (f *Fleet) Stage(id int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.machines[id]; m != nil {
		return m.stage
	}
	return "off"
}

// haunt puts a former cluster's etcd on a disk, once in the life of the state, where that fault is wanted.
func (f *Fleet) haunt(id int) {
	if !f.Profile.Faults.Is(profile.Ghosts, id) || slices.Contains(f.state.Haunted, id) {
		return
	}
	f.state.Haunted = append(f.state.Haunted, id)
	f.state.disk(id).Etcd = &dataDir{Cluster: random(), Member: random()}
	f.keep()
}

// change runs under the lock and wakes everybody who waits.
func (f *Fleet) change(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
	f.wake()
}

func (f *Fleet) wake() {
	f.elect()
	close(f.changed)
	f.changed = make(chan struct{})
}

// until waits for a condition, which is asked under the lock after every change. It is false when the context ended first.
func (f *Fleet) until(ctx context.Context, condition func() bool) bool {
	for {
		f.mu.Lock()
		met, changed := condition(), f.changed
		f.mu.Unlock()
		if ctx.Err() != nil {
			return false
		}
		if met {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// saved writes the disks, under the lock.
func (f *Fleet) saved() error { return f.state.save(f.State) }

// keep is saved where nobody can be told.
func (f *Fleet) keep() {
	if err := f.saved(); err != nil {
		f.Log.Error("the machines' disks are not kept", "error", err)
	}
}

// at is the machine that has an address, under the lock.
func (f *Fleet) at(address string) *machine {
	for _, m := range f.machines {
		if m.live.String() == address || m.conf != nil && m.conf.hostname == address {
			return m
		}
	}
	return nil
}

// elsewhere is an address of a VM's subnet that no VM has, under the lock: the highest free one.
func (f *Fleet) elsewhere(vm VM) netip.Addr {
	taken := func(a netip.Addr) bool {
		if a == vm.Gateway || a == vm.Address.Addr() {
			return true
		}
		for _, m := range f.machines {
			if m.live == a || m.vm.Address.Addr() == a {
				return true
			}
		}
		return false
	}
	address := last(vm.Address.Masked()).Prev() // the last one is for broadcasts
	for taken(address) {
		address = address.Prev()
	}
	return address
}

func last(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address
}

func (f *Fleet) endpoint(address netip.Addr) netip.AddrPort {
	return netip.AddrPortFrom(address, f.Port)
}

func (f *Fleet) sleep(ctx context.Context, d time.Duration) bool {
	return f.Profile.Sleep(ctx, d) == nil
}

// pass lets a fault's time pass, which is not scaled. It is false when the context ended first.
func pass(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *Fleet) name(m *machine) slog.Attr {
	return slog.String("vm", m.vm.Name+" "+strconv.Itoa(m.vm.ID))
}
