// Package proxmox is a Proxmox VE host as its API shows it: VMs, clones, tasks, locks and storages with true state
// in one file that a power cut leaves whole, and the answers, delays and error texts that the provider bpg/proxmox and the
// library go-proxmox know from real hosts. It never runs a VM: what one with power does is a Machines' matter.
//
// It is one large package since every call of the API is a method on the one state, under its lock.
package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"tazlab.net/castle/ci/sandbox/profile"
)

// Options of a Server. File and Tokens are required.
type Options struct {
	File     string          // the state; created by the first change
	Profile  profile.Profile // delays VMClone, VMConfig, VMStart, VMStop, VMDelete; faults ProxmoxMoods, StorageLock, CloneFails, DiskStays, StorageFull, ClockSkew
	Machines Machines        // nil: the VMs do nothing
	Tokens   []string        // "user@realm!name=secret"
	// Privileges are what each token has, by path, down to the next path that is listed; nil: all on /. The fault PrivilegeMissing takes some away.
	Privileges map[string][]string
	Nodes      []Node    // default: one node "pve"
	Storages   []Storage // default: "local" (dir) and "local-lvm" (lvmthin)
	Bridges    []string  // default: "vmbr0"
}

// Node is a host of the Proxmox cluster. Its first one serves the API.
type Node struct {
	Name    string
	Address netip.Addr
	Offline bool // every request for it ends as with a host that does not answer
}

// Storage is a place for volumes.
type Storage struct {
	ID      string
	Type    string // "dir" or "lvmthin"
	Content string // such as "images,rootdir"
	Bytes   int64
	Shared  bool // by all nodes
}

// Server is the simulator. It serves /api2/json over HTTP/1.1 only; see HTTP.
type Server struct {
	file     string
	profile  profile.Profile
	machines Machines
	nodes    []Node
	storages []Storage
	bridges  []string
	access   access
	acl      acl
	handler  http.Handler
	booted   time.Time

	ctx      context.Context
	stop     context.CancelCauseFunc
	workers  sync.WaitGroup
	events   *dispatcher
	configs  keyedLocks // a VM's configuration file
	clonings keyedLocks // a template's clones

	mu    sync.Mutex
	state *state
	told  map[int]bool // VMs whose power Machines knows of
	moods int          // requests that are yet to fail
	locks int          // how often a storage's lock is yet not to be had
}

// clonesAtOnce is how many clones of one template the storage makes at a time.
const clonesAtOnce = 2

// How often requests fail, and a storage's lock is not to be had, where the faults do not say.
const (
	defaultMoods = 3
	defaultLocks = 2
)

// configLockTimeout is how long a request waits for another one that changes the same VM.
const configLockTimeout = 10 * time.Second

// New starts a simulator with what the file holds. Tasks that ran when it was last written are ended with an error.
func New(options Options) (*Server, error) {
	if options.File == "" {
		return nil, fmt.Errorf("the Proxmox simulator needs a file for its state")
	}
	s := &Server{
		file: options.File, profile: options.Profile, machines: options.Machines,
		nodes: options.Nodes, storages: options.Storages, bridges: options.Bridges, booted: time.Now(),
		access:   access{},
		acl:      everything,
		configs:  keyedLocks{limit: 1},
		clonings: keyedLocks{limit: clonesAtOnce},
		told:     map[int]bool{},
		moods:    options.Profile.Faults.Count(profile.ProxmoxMoods, defaultMoods),
		locks:    options.Profile.Faults.Count(profile.StorageLock, defaultLocks),
	}
	for _, token := range options.Tokens {
		id, secret, _ := strings.Cut(token, "=")
		if user, name, _ := strings.Cut(id, "!"); !strings.Contains(user, "@") || name == "" || secret == "" {
			return nil, fmt.Errorf("an API token of the Proxmox simulator is not of the form user@realm!name=secret")
		}
		s.access[id] = secret
	}
	if options.Privileges != nil {
		s.acl = options.Privileges
	}
	if err := s.acl.known(); err != nil {
		return nil, err
	}
	if missing := options.Profile.Faults[profile.PrivilegeMissing]; missing != "" {
		lacks := strings.Split(missing, ",")
		if err := (acl{"/": lacks}).known(); err != nil {
			return nil, fmt.Errorf("fault %s: %w", profile.PrivilegeMissing, err)
		}
		s.acl = s.acl.without(lacks)
	}
	if len(s.access) == 0 {
		return nil, fmt.Errorf("the Proxmox simulator needs an API token: nobody could call it")
	}
	if s.machines == nil {
		s.machines = bystander{}
	}
	if len(s.nodes) == 0 {
		s.nodes = []Node{{Name: "pve"}}
	}
	if len(s.storages) == 0 {
		s.storages = []Storage{
			{ID: "local", Type: "dir", Content: "iso,vztmpl,backup,snippets,images", Bytes: 100 << 30},
			{ID: "local-lvm", Type: "lvmthin", Content: "images,rootdir", Bytes: 2 << 40},
		}
	}
	if len(s.bridges) == 0 {
		s.bridges = []string{"vmbr0"}
	}
	loaded, err := load(s.file)
	if err != nil {
		return nil, fmt.Errorf("start the Proxmox simulator: %w", err)
	}
	loaded.endLostTasks(time.Now())
	s.state = loaded
	if err := s.save(); err != nil {
		return nil, fmt.Errorf("start the Proxmox simulator: %w", err)
	}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	s.events = newDispatcher()
	s.handler = s.routes()
	return s, nil
}

// Close is a power cut: tasks stop where they are, and nothing more is written. It returns when Machines has been told
// what happened before.
func (s *Server) Close() {
	s.stop(errPowerCut)
	s.workers.Wait()
	s.events.close()
}

// Guest is a VM that is there from the beginning.
type Guest struct {
	VM
	Template bool
	Running  bool
	Config   map[string]string // further options as in a VM's configuration file; they win over those from VM
}

// Seed adds VMs that are not there yet; one with a known id is left as it is, so that a restart changes nothing.
func (s *Server) Seed(guests ...Guest) error {
	return s.change(func() error {
		for _, seed := range guests {
			if _, exists := s.state.Guests[seed.ID]; exists {
				continue
			}
			added, err := s.seeded(seed)
			if err != nil {
				return fmt.Errorf("VM %d: %w", seed.ID, err)
			}
			if added.Running {
				s.powerOn(added)
			}
		}
		return nil
	})
}

// Resume gives power to the VMs that had it when the state was last written, once.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.guestIDs() {
		if g := s.state.Guests[id]; g.Running && !s.told[id] {
			s.notifyPowerOn(g)
		}
	}
}

// Unlock removes a VM's lock, as "qm unlock" on the host does; the API has no such call. A clone that a power cut
// interrupted leaves a locked VM behind.
func (s *Server) Unlock(id int) error {
	return s.change(func() error {
		g, exists := s.state.Guests[id]
		if !exists {
			return fmt.Errorf("VM %d does not exist", id)
		}
		delete(g.Config, "lock")
		return nil
	})
}

// HTTP is a server for the API that speaks HTTP/1.1 only: HTTP/2 has no text beside a status code, and the clients read
// Proxmox's errors there. The caller adds the certificate and the address.
func (s *Server) HTTP() *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Server{Handler: s, Protocols: &protocols, ReadHeaderTimeout: time.Minute}
}

// ServeHTTP serves the API. Some calls have a slash at their end, which means nothing.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.URL.Path) > 1 && strings.HasSuffix(r.URL.Path, "/") {
		trimmed := *r.URL
		trimmed.Path, trimmed.RawPath = strings.TrimSuffix(r.URL.Path, "/"), strings.TrimSuffix(r.URL.RawPath, "/")
		copied := *r
		copied.URL = &trimmed
		r = &copied
	}
	w.Header().Set("Date", s.clock().UTC().Format(http.TimeFormat))
	s.handler.ServeHTTP(w, r)
}

// defaultSkew is how wrong the host's clock is where the fault does not say.
const defaultSkew = 10 * time.Minute

// clock is the host's time as its answers have it.
func (s *Server) clock() time.Time {
	skew, _ := s.profile.Faults.Duration(profile.ClockSkew, defaultSkew)
	return time.Now().Add(skew)
}

// request is an authorised call.
type request struct {
	http   *http.Request
	params url.Values
	user   string // with !token
}

type handler func(r *request) (any, error)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	route := func(pattern string, handle handler, asks ...requirement) {
		method, path, _ := strings.Cut(pattern, " ")
		if _, known := callParameters[pattern]; !known {
			panic("the Proxmox simulator has no schema for the call " + pattern)
		}
		mux.HandleFunc(method+" /api2/json"+path, func(w http.ResponseWriter, r *http.Request) {
			data, err := s.call(r, pattern, handle, asks)
			if err != nil {
				writeFailure(w, err)
				return
			}
			writeAnswer(w, data)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.access.identify(r); err != nil {
			writeFailure(w, err)
			return
		}
		path := strings.TrimPrefix(r.URL.Path, "/api2/json")
		writeFailure(w, &failure{code: http.StatusNotImplemented, message: fmt.Sprintf("Method '%s %s' not implemented", r.Method, path)})
	})

	route("GET /version", s.version)
	route("GET /cluster/status", s.clusterStatus, allOf("/", "Sys.Audit"))
	route("GET /cluster/resources", s.resources)
	route("GET /cluster/nextid", s.nextID)
	route("GET /cluster/tasks", s.taskList)
	route("GET /storage", s.storageList)
	route("GET /pools", s.poolList)
	route("GET /access/permissions", s.permissions)

	route("GET /nodes", s.nodeList)
	const node = "/nodes/{node}"
	route("GET "+node+"/status", s.nodeStatus, allOf(node, "Sys.Audit"))
	route("GET "+node+"/version", s.version)
	route("GET "+node+"/network", s.bridgeList)
	route("GET "+node+"/storage", s.storageList)
	const storage = "/storage/{storage}"
	readable := oneOf(storage, "Datastore.Audit", "Datastore.AllocateSpace")
	route("GET "+node+storage+"/status", s.storageStatus, readable)
	route("GET "+node+storage+"/content", s.contentList, readable)
	route("GET "+node+storage+"/content/{volume}", s.contentGet, readable)
	route("GET "+node+"/tasks", s.taskList)
	route("GET "+node+"/tasks/{upid}/status", s.taskStatus)
	route("GET "+node+"/tasks/{upid}/log", s.taskLog)
	route("DELETE "+node+"/tasks/{upid}", s.taskStop)

	const at = "/vms/{vmid}"
	audit, power, allocate, disk := allOf(at, "VM.Audit"), allOf(at, "VM.PowerMgmt"), allOf(at, "VM.Allocate"), allOf(at, "VM.Config.Disk")
	change, agent := oneOf(at, configPrivileges...), allOf(at, "VM.Monitor")
	route("GET "+node+"/qemu", s.guestList)
	route("POST "+node+"/qemu", s.create, allocate)
	const vm = node + "/qemu/{vmid}"
	route("DELETE "+vm, s.destroy, allocate)
	route("GET "+vm+"/status/current", s.guestStatus, audit)
	route("POST "+vm+"/status/start", s.start, power)
	route("POST "+vm+"/status/stop", s.halt("qmstop"), power)
	route("POST "+vm+"/status/shutdown", s.halt("qmshutdown"), power)
	route("POST "+vm+"/status/reboot", s.restart("qmreboot"), power)
	route("POST "+vm+"/status/reset", s.restart("qmreset"), power)
	route("GET "+vm+"/config", s.configGet, audit)
	route("PUT "+vm+"/config", s.configPut, change)
	route("POST "+vm+"/config", s.configPost, change)
	route("PUT "+vm+"/cloudinit", s.cloudInitRebuild, allOf(at, "VM.Config.Cloudinit"))
	route("PUT "+vm+"/resize", s.resize, disk)
	route("POST "+vm+"/move_disk", s.moveDisk, disk)
	route("POST "+vm+"/clone", s.clone, allOf(at, "VM.Clone"), allOf("/vms/{newid}", "VM.Allocate"))
	route("POST "+vm+"/template", s.makeTemplate, allocate)
	route("POST "+vm+"/migrate", s.migrate, allOf(at, "VM.Migrate"))
	route("GET "+vm+"/agent/network-get-interfaces", s.agentInterfaces, agent)
	route("POST "+vm+"/agent/ping", s.agentPing, agent)
	return mux
}

// call checks who calls, what that caller may do, whether the node is there, and then the parameters: the order of rest_handler in
// PVE/HTTPServer.pm of pve-manager 8.4.1.
func (s *Server) call(r *http.Request, pattern string, handle handler, asks []requirement) (any, error) {
	user, err := s.access.identify(r)
	if err != nil {
		return nil, err
	}
	params, err := parameters(r)
	if err != nil {
		return nil, err
	}
	asked := &request{http: r, params: params, user: user}
	for _, ask := range asks {
		if err := ask(s.acl, asked); err != nil {
			return nil, err
		}
	}
	if name := r.PathValue("node"); name != "" {
		at := slices.IndexFunc(s.nodes, func(n Node) bool { return n.Name == name })
		if at < 0 {
			return nil, internal("hostname lookup '%s' failed - failed to get address info for: %s: Name or service not known", name, name)
		}
		if s.nodes[at].Offline {
			const connectionTimedOut = 596 // Proxmox's own code for a proxied request
			return nil, &failure{code: connectionTimedOut, message: "Connection timed out"}
		}
	}
	if err := asked.verify(pattern); err != nil {
		return nil, err
	}
	return handle(asked)
}

// change runs a function under the lock and saves the state unless it returns an error; such a function must change
// nothing before it knows that it will not fail.
func (s *Server) change(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx != nil && s.ctx.Err() != nil {
		return errPowerCut
	}
	if err := do(); err != nil {
		return err
	}
	return s.save()
}

// save writes the state; s.mu is held. After a power cut it does nothing.
func (s *Server) save() error {
	if s.ctx != nil && s.ctx.Err() != nil {
		return errPowerCut
	}
	return s.state.save(s.file)
}

// guestIDs are in ascending order; s.mu is held.
func (s *Server) guestIDs() []int {
	ids := make([]int, 0, len(s.state.Guests))
	for id := range s.state.Guests {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// lockTimeout is the error of a request that has waited too long for a VM's configuration.
func lockTimeout(id int) error {
	return internal("can't lock file '/var/lock/qemu-server/lock-%d.conf' - got timeout", id)
}

// moody fails a request that changes a VM while the host is in its moods.
func (s *Server) moody(id int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moods == 0 {
		return nil
	}
	s.moods--
	return lockTimeout(id)
}

// keyedLocks lets a limited number of holders have each id.
type keyedLocks struct {
	limit int
	mu    sync.Mutex
	slots map[int]chan struct{}
}

func (k *keyedLocks) slot(id int) chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.slots == nil {
		k.slots = map[int]chan struct{}{}
	}
	if k.slots[id] == nil {
		k.slots[id] = make(chan struct{}, k.limit)
	}
	return k.slots[id]
}

// try takes a place at once or not at all.
func (k *keyedLocks) try(id int) (release func(), taken bool) {
	slot := k.slot(id)
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, true
	default:
		return nil, false
	}
}

// wait takes a place or returns the context's error.
func (k *keyedLocks) wait(ctx context.Context, id int) (release func(), err error) {
	slot := k.slot(id)
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
