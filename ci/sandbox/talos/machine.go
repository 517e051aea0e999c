package talos

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc"

	"tazlab.net/castle/ci/sandbox/profile"
)

// Stages of a machine.
const (
	stageBooting     = "booting"
	stageMaintenance = "maintenance"
	stageConfiguring = "configuring"
	stageInstalling  = "installing"
	stageRebooting   = "rebooting"
	stageRunning     = "running"
)

// command is what ends a stretch of operation, other than a power cut.
type command int

const (
	commandNone command = iota
	commandReboot
	commandShutdown
)

// apiFirst is the part of a start after which the API answers, while the services are still to come.
const apiFirst = 0.9

// machine is one machine that is on.
type machine struct {
	fleet    *Fleet
	vm       VM
	template Template        // on its disk
	ctx      context.Context // ends with the power
	cut      context.CancelFunc
	done     chan struct{}
	commands chan command
	applied  chan []byte // a configuration given in maintenance mode, one at most

	// All below is under the fleet's lock.
	stage     string
	taken     bool       // it was given one
	live      netip.Addr // where it answers
	conf      *settings  // since it runs with a configuration
	services  services
	ready     bool      // the container runtime is up, so that etcd can be bootstrapped
	member    bool      // its etcd process runs
	began     time.Time // since when
	synced    bool      // the clock is in step
	image     bool      // that of etcd is there
	bootstrap bool      // bootstrap was called
	looked    time.Time // when etcd's health check sees that it is no learner any more
	stopping  bool      // etcd was told to stop for a bootstrap
	stopped   bool      // and has
	refuses   bool      // its API server restarts
	kubelet   bool      // its image is there, and it runs
	control   bool      // the world runs its control plane
	wiped     bool      // it was reset, and has yet to restart
	ending    bool      // it restarts or switches itself off, in order
}

func newMachine(f *Fleet, vm VM, template Template) *machine {
	m := &machine{fleet: f, vm: vm, template: template, done: make(chan struct{}), commands: make(chan command, 1), applied: make(chan []byte, 1),
		stage: stageBooting, services: services{}}
	m.ctx, m.cut = context.WithCancel(context.Background())
	return m
}

// run is the machine's life until its power is cut or it switches itself off.
func (m *machine) run() {
	f := m.fleet
	defer close(m.done)
	defer m.cut()
	next := commandNone
	for m.ctx.Err() == nil && next != commandShutdown {
		next = m.start()
		name, wiped, last := "", false, true
		f.change(func() {
			if m.conf != nil {
				name = m.conf.hostname
			}
			wiped = m.wiped
			m.conf, m.services, m.live, m.ready, m.wiped = nil, services{}, netip.Addr{}, false, false
			for _, other := range f.machines {
				last = last && (other.conf == nil || !other.conf.control)
			}
			last = last && len(f.state.Clusters) == 0
		})
		if wiped && f.Wiped != nil {
			f.Wiped(name, last)
		}
	}
	f.change(func() { delete(f.machines, m.vm.ID) })
	if next == commandShutdown && f.Stopped != nil {
		f.Stopped(m.vm.ID)
	}
}

// start is one life from power on, or a restart, to the next.
func (m *machine) start() command {
	f := m.fleet
	var config []byte
	blank, installed := false, false
	f.mu.Lock()
	if d := f.state.disk(m.vm.ID); d != nil {
		config, blank, installed = d.Config, d.Blank, d.Template != nil
	}
	f.mu.Unlock()
	if blank {
		<-m.ctx.Done() // nothing to start from
		return commandNone
	}
	stage, takes := stageRebooting, f.Profile.Delays.Reboot
	if config == nil {
		m.enter(stageBooting)
		if !f.sleep(m.ctx, f.Profile.Delays.Boot) {
			return commandNone
		}
		var next command
		if config, next = m.maintain(); config == nil {
			return next
		}
		if installed { // no installer runs, and nothing restarts
			stage, takes = stageConfiguring, f.Profile.Delays.Configure
		} else {
			m.enter(stageInstalling)
			if !f.sleep(m.ctx, f.Profile.Delays.Install) {
				return commandNone // not installed: back to maintenance mode at the next power on
			}
		}
		f.change(func() {
			m.install(config)
			f.state.disk(m.vm.ID).Config = config
			f.keep()
		})
	}
	m.enter(stage)
	conf, err := parse(config)
	if err != nil {
		f.Log.Error("an installed configuration cannot be read", f.name(m), "error", err)
		<-m.ctx.Done()
		return commandNone
	}
	if !f.sleep(m.ctx, time.Duration(apiFirst*float64(takes))) {
		return commandNone
	}
	return m.operate(conf, time.Duration((1-apiFirst)*float64(takes)))
}

// maintain serves maintenance mode until a configuration is applied.
func (m *machine) maintain() ([]byte, command) {
	f := m.fleet
	var address netip.Addr
	f.change(func() {
		address = m.vm.Address.Addr()
		if f.Profile.Faults.Is(profile.DHCPDrift, m.vm.ID) {
			address = f.elsewhere(m.vm)
		}
		m.live, m.taken = address, len(m.applied) > 0
	})
	listener := m.listen(address)
	if listener == nil {
		return nil, commandNone
	}
	server, err := m.maintenanceServer(address)
	if err != nil {
		f.Log.Error("maintenance mode cannot start", f.name(m), "error", err)
		_ = listener.Close() // nobody was served
		<-m.ctx.Done()
		return nil, commandNone
	}
	m.enter(stageMaintenance)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends by Stop
	}()
	defer func() { <-served }()
	select {
	case config := <-m.applied:
		quit(server, listener)
		return config, commandNone
	case next := <-m.commands:
		quit(server, listener)
		return nil, next
	case <-m.ctx.Done():
		stop(server, listener)
		return nil, commandNone
	}
}

// operate is the time with a configuration.
func (m *machine) operate(conf *settings, rest time.Duration) command {
	f := m.fleet
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	address := m.vm.Address.Addr()
	if conf.address.IsValid() {
		address = conf.address
	}
	// A worker's certificate is signed by a control plane, which must be there.
	authority := m.authority(ctx, conf)
	if authority == nil {
		return commandNone
	}
	listener := m.listen(address)
	if listener == nil {
		return commandNone
	}
	server, err := m.configuredServer(conf, address, authority)
	if err != nil {
		f.Log.Error("the configured API cannot start", f.name(m), "error", err)
		_ = listener.Close() // nobody was served
		<-ctx.Done()
		return commandNone
	}
	f.change(func() {
		m.live, m.conf = address, conf
		m.synced, m.bootstrap, m.stopping, m.stopped, m.ending, m.image, m.kubelet = false, false, false, false, false, false, false
		m.services.set("machined", "Running", "Service started as goroutine")
		m.services.set("apid", "Running", "Health check successful")
	})
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Serve(listener) }) // ends by Stop
	wait.Go(func() { m.serve(ctx, rest, &wait) })

	next := commandNone
	select {
	case next = <-m.commands:
		f.change(func() { m.ending = true })
		quit(server, listener)
	case <-ctx.Done():
	}
	cancel()
	stop(server, listener)
	wait.Wait()
	f.change(func() { m.member = false })
	return next
}

// quit ends an API after a call that asked for it: the answer goes out first.
func quit(server *grpc.Server, listener *line) {
	cut := time.AfterFunc(time.Second, func() { stop(server, listener) })
	defer cut.Stop()
	server.GracefulStop()
}

// stop ends an API at once.
func stop(server *grpc.Server, listener *line) {
	listener.cut()
	server.Stop()
}

// serve starts the services and hands the machine to etcd and to the world.
func (m *machine) serve(ctx context.Context, rest time.Duration, wait *sync.WaitGroup) {
	f := m.fleet
	if !f.sleep(ctx, rest) {
		return
	}
	late, isLate := f.Profile.Faults.Duration(profile.TimeLate, 10*time.Second)
	f.change(func() {
		m.stage, m.ready, m.synced = stageRunning, true, !isLate
		for _, id := range []string{"containerd", "cri", "udevd", "syslogd"} {
			m.services.set(id, "Running", "Health check successful")
		}
		m.services.set("kubelet", "Preparing", "Running pre state")
		if m.conf.control {
			m.services.set("trustd", "Running", "Health check successful")
		}
	})
	if isLate {
		wait.Go(func() {
			if pass(ctx, late) {
				f.change(func() { m.synced = true })
			}
		})
	}
	if m.settings().control {
		wait.Go(func() { m.runEtcd(ctx) })
		wait.Go(func() { m.runControlPlane(ctx) })
	}
	wait.Go(func() { m.runKubelet(ctx) })
}

// runControlPlane runs the world's static pods while this machine's etcd is a voter with a quorum.
func (m *machine) runControlPlane(ctx context.Context) {
	f := m.fleet
	conf := m.settings()
	node := m.node(conf)
	first := true
	for f.until(ctx, func() bool { return m.votes() && m.kubelet }) {
		if first && !(m.pull(ctx, conf, conf.staticPods()...) && f.sleep(ctx, f.Profile.Delays.ControlPlane)) {
			return
		}
		first = false
		if !m.insist(ctx, "control plane", func() error { return f.Cluster.ControlPlaneUp(ctx, node, conf.controlPlane()) }) {
			return
		}
		f.change(func() { m.control = true })
		for restart := true; restart; {
			f.until(ctx, func() bool {
				restart = f.restarts && f.holder == m && m.votes()
				return restart || !m.votes()
			})
			restart = restart && m.restartAPI(ctx, node, conf)
		}
		f.change(func() { m.control = false })
		f.Cluster.ControlPlaneDown(node)
	}
}

// restartAPI is the fault apiserver-restarts: once, a static pod starts anew, as it does for another configuration. Its holder gives the
// virtual address away then: campaign in internal/app/machined/pkg/controllers/network/operator/vip.go of Talos 1.13. It is false when
// the context ended first.
func (m *machine) restartAPI(ctx context.Context, node Node, conf *settings) bool {
	f := m.fleet
	f.change(func() { f.restarts = false })
	if !pass(ctx, flapAfter) {
		return false
	}
	f.change(func() { m.refuses = true })
	defer f.change(func() { m.refuses = false })
	f.Cluster.ControlPlaneDown(node)
	length, _ := f.Profile.Faults.Duration(profile.APIRestarts, 10*time.Second)
	return pass(ctx, length) && m.insist(ctx, "control plane", func() error { return f.Cluster.ControlPlaneUp(ctx, node, conf.controlPlane()) })
}

// runKubelet registers the node once some control plane of its cluster is up.
func (m *machine) runKubelet(ctx context.Context) {
	f := m.fleet
	conf := m.settings()
	node := m.node(conf)
	if !m.pull(ctx, conf, conf.provider.Machine().Kubelet().Image()) {
		return
	}
	f.change(func() {
		m.kubelet = true
		m.services.set("kubelet", "Running", "Health check successful")
	})
	up := func() bool {
		for _, other := range f.machines {
			if other.control && other.conf != nil && other.conf.cluster == conf.cluster {
				return true
			}
		}
		return false
	}
	if !f.until(ctx, up) || !f.sleep(ctx, f.Profile.Delays.Kubelet) {
		return
	}
	if !m.insist(ctx, "kubelet", func() error { return f.Cluster.NodeUp(ctx, node) }) {
		return
	}
	for f.until(ctx, func() bool { return m.conf != conf }) {
		conf = m.settings()
		m.insist(ctx, "labels and taints", func() error { return f.Cluster.NodeUp(ctx, m.node(conf)) })
	}
	f.Cluster.NodeDown(node)
}

// pull has images pulled beside each other, as Talos does those of its own services and the kubelet those of static pods. What a registry refuses
// is asked for again, for 20 minutes (internal/pkg/containers/image/image.go of Talos 1.13) and here for good. False: the machine stopped first.
func (m *machine) pull(ctx context.Context, conf *settings, images ...string) bool {
	var wait sync.WaitGroup
	for _, image := range images {
		wait.Go(func() {
			m.insist(ctx, "image "+image, func() error { return m.fleet.Cluster.Pull(ctx, m.node(conf), image) })
		})
	}
	wait.Wait()
	return ctx.Err() == nil
}

// insist repeats what the world could not do.
func (m *machine) insist(ctx context.Context, what string, do func() error) bool {
	for ctx.Err() == nil {
		err := do()
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			m.fleet.Log.Error(what+" does not start", m.fleet.name(m), "error", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	return false
}

// listen opens the API's port; another machine may still have it.
func (m *machine) listen(address netip.Addr) *line {
	for m.ctx.Err() == nil {
		listener, err := m.fleet.Listen(m.fleet.endpoint(address))
		if err == nil {
			return newLine(listener)
		}
		m.fleet.Log.Error("the port of the Talos API cannot be opened", m.fleet.name(m), "error", err)
		select {
		case <-time.After(200 * time.Millisecond):
		case <-m.ctx.Done():
		}
	}
	return nil
}

func (m *machine) enter(stage string) { m.fleet.change(func() { m.stage = stage }) }

func (m *machine) settings() *settings {
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	return m.conf
}

// order gives the machine a command; the first one counts.
func (m *machine) order(next command) {
	select {
	case m.commands <- next:
	default:
	}
}

func (m *machine) node(conf *settings) Node {
	return Node{
		Name: conf.hostname, VMID: m.vm.ID, Role: conf.role(), Address: m.address(conf), Cores: m.vm.Cores, MemoryMiB: m.vm.MemoryMiB,
		KubernetesVersion: tag(conf.provider.Machine().Kubelet().Image()), TalosVersion: m.template.Talos,
		Shared: conf.sharedMounts(), Labels: conf.labels(), Taints: conf.taints(),
	}
}

func (m *machine) address(conf *settings) netip.Addr {
	if conf.address.IsValid() {
		return conf.address
	}
	return m.vm.Address.Addr()
}

func random() uint64 {
	var bytes [8]byte
	_, _ = rand.Read(bytes[:]) // never fails
	return binary.BigEndian.Uint64(bytes[:])>>1 | 1
}
