package proxmox

import (
	"net/netip"
	"sync"
)

// VM is a virtual machine as its hardware and cloud-init drive describe it.
type VM struct {
	ID        int
	Name      string
	Node      string       // the host that it runs on
	Address   netip.Prefix // ip of ipconfig0; invalid where that is DHCP or not set
	Gateway   netip.Addr   // gw of ipconfig0
	DNS       []netip.Addr
	Cores     int
	MemoryMiB int
	Disks     []Disk // in the order of their interfaces, without the cloud-init drive
	MAC       string // of net0, in capitals
	UUID      string // of smbios1
	Tags      []string
}

// Disk is one disk of a VM.
type Disk struct {
	Interface string // such as scsi0
	Volume    string // such as local-lvm:vm-521-disk-0; Seed makes one up where it is empty
	Bytes     int64
}

// Interface is what a guest agent tells about one network interface.
type Interface struct {
	Name      string
	MAC       string
	Addresses []netip.Prefix
}

// Machines is what the VMs do once they have power. PowerOn, PowerOff and Removed are called one after the other in the
// order of the events, outside of any request: a slow one delays the next, not the API. Interfaces is called by requests,
// at the same time as the others; it returns false while the VM's guest agent does not run.
type Machines interface {
	PowerOn(vm VM)
	PowerOff(id int)
	Removed(id int)
	Interfaces(id int) ([]Interface, bool)
}

// bystander is a Machines whose VMs do nothing.
type bystander struct{}

func (bystander) PowerOn(VM)                         {}
func (bystander) PowerOff(int)                       {}
func (bystander) Removed(int)                        {}
func (bystander) Interfaces(int) ([]Interface, bool) { return nil, false }

// dispatcher calls Machines in order without making anybody wait.
type dispatcher struct {
	mu      sync.Mutex
	wake    *sync.Cond
	events  []func()
	closed  bool
	stopped chan struct{}
}

func newDispatcher() *dispatcher {
	d := &dispatcher{stopped: make(chan struct{})}
	d.wake = sync.NewCond(&d.mu)
	go d.run()
	return d
}

func (d *dispatcher) add(event func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, event)
	d.wake.Signal()
}

func (d *dispatcher) run() {
	defer close(d.stopped)
	for {
		d.mu.Lock()
		for len(d.events) == 0 && !d.closed {
			d.wake.Wait()
		}
		if len(d.events) == 0 {
			d.mu.Unlock()
			return
		}
		event := d.events[0]
		d.events = d.events[1:]
		d.mu.Unlock()
		event()
	}
}

// close returns once all events are delivered.
func (d *dispatcher) close() {
	d.mu.Lock()
	d.closed = true
	d.wake.Signal()
	d.mu.Unlock()
	<-d.stopped
}
