package proxmox

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	api "github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/sandbox/profile"
)

const (
	tokenID     = "castle@pve!test"
	tokenSecret = "5f8a9c0e-0000-4000-8000-0123456789ab"
	gib         = int64(1) << 30
)

// template is the VM that every test clones.
var template = Guest{
	VM: VM{
		ID: 900, Name: "talos-template", Cores: 2, MemoryMiB: 2048,
		Disks: []Disk{{Interface: "scsi0", Bytes: 10 * gib}},
	},
	Template: true,
}

// recorder is a Machines that notes what it is told, and whose VMs have a running agent once they have power.
type recorder struct {
	mu     sync.Mutex
	events []string
	on     map[int]VM
	told   chan struct{} // has room for one
}

func newRecorder() *recorder { return &recorder{on: map[int]VM{}, told: make(chan struct{}, 1)} }

func (r *recorder) note(event string, change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
	change()
	select {
	case r.told <- struct{}{}:
	default:
	}
}

func (r *recorder) PowerOn(vm VM)   { r.note("on "+vm.Name, func() { r.on[vm.ID] = vm }) }
func (r *recorder) PowerOff(id int) { r.note("off", func() { delete(r.on, id) }) }
func (r *recorder) Removed(int)     { r.note("removed", func() {}) }

func (r *recorder) Interfaces(id int) ([]Interface, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	vm, on := r.on[id]
	return []Interface{{Name: "eth0", MAC: vm.MAC, Addresses: []netip.Prefix{vm.Address}}}, on
}

// waitFor returns once the last event is the given one.
func (r *recorder) waitFor(t *testing.T, event string) {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		r.mu.Lock()
		seen := len(r.events) > 0 && r.events[len(r.events)-1] == event
		events := slices.Clone(r.events)
		r.mu.Unlock()
		if seen {
			return
		}
		select {
		case <-r.told:
		case <-deadline:
			t.Fatalf("got events %q, the last should be %q", events, event)
		}
	}
}

func (r *recorder) vm(id int) (VM, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	vm, on := r.on[id]
	return vm, on
}

// world is a simulator behind TLS and a client with a valid token.
type world struct {
	*Server
	machines *recorder
	http     *httptest.Server
	client   *api.Client
}

// newWorld starts a simulator with the template; change may be nil.
func newWorld(t *testing.T, change func(*Options)) *world {
	t.Helper()
	w := &world{machines: newRecorder()}
	options := Options{
		File: filepath.Join(t.TempDir(), "proxmox.json"), Machines: w.machines, Tokens: []string{tokenID + "=" + tokenSecret},
	}
	if change != nil {
		change(&options)
	}
	server, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	w.Server = server
	if err := server.Seed(template); err != nil {
		t.Fatal(err)
	}
	w.http = httptest.NewUnstartedServer(server)
	w.http.Config = server.HTTP()
	w.http.StartTLS()
	w.client = w.newClient(api.WithAPIToken(tokenID, tokenSecret))
	t.Cleanup(w.end)
	return w
}

// end may be called more than once.
func (w *world) end() {
	w.http.Close()
	w.Server.Close()
}

func (w *world) newClient(options ...api.Option) *api.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	return api.NewClient(w.http.URL+"/api2/json",
		append([]api.Option{api.WithHTTPClient(&http.Client{Transport: transport, Timeout: time.Minute})}, options...)...)
}

func (w *world) vm(t *testing.T, id int) *api.VirtualMachine {
	t.Helper()
	node, err := w.client.Node(t.Context(), "pve")
	if err != nil {
		t.Fatal(err)
	}
	vm, err := node.VirtualMachine(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// wait returns a task's exit text.
func wait(t *testing.T, task *api.Task) string {
	t.Helper()
	if task == nil {
		t.Fatal("got no task")
	}
	if err := task.Wait(t.Context(), 5*time.Millisecond, time.Minute); err != nil {
		t.Fatal(err)
	}
	return task.ExitStatus
}

func done(t *testing.T, task *api.Task, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, task); exit != "OK" {
		t.Fatalf("task %s ended with %q", task.UPID, exit)
	}
}

func (w *world) cloneTask(ctx context.Context, t *testing.T, id int, name string) (*api.Task, error) {
	t.Helper()
	_, task, err := w.vm(t, 900).Clone(ctx, &api.VirtualMachineCloneOptions{NewID: id, Name: name, Full: true})
	return task, err
}

func (w *world) mustClone(t *testing.T, id int, name string) {
	t.Helper()
	task, err := w.cloneTask(t.Context(), t, id, name)
	done(t, task, err)
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got error %v, want one with %q", err, text)
	}
}

// slow is a profile with one delay and faults.
func slow(delays profile.Delays, faults profile.Faults) func(*Options) {
	return func(o *Options) { o.Profile = profile.Profile{Scale: 1, Delays: delays, Faults: faults} }
}

// raw calls the API without a library and returns the status line and the body.
func (w *world) raw(t *testing.T, method, path, token string) (string, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.http.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "PVEAPIToken="+token)
	}
	response, err := w.http.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body := new(strings.Builder)
	if err := response.Write(body); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
		t.Fatal(err)
	}
	return response.Status, body.String()
}

func option(name string, value any) api.VirtualMachineOption {
	return api.VirtualMachineOption{Name: name, Value: value}
}

// configured is a clone with a static address.
func (w *world) configured(t *testing.T, id int, name, address string, more map[string]any) *api.VirtualMachine {
	t.Helper()
	w.mustClone(t, id, name)
	options := []api.VirtualMachineOption{
		option("cores", 4), option("memory", 8192), option("agent", "enabled=1"), option("nameserver", "192.168.77.1 9.9.9.9"),
		option("ide2", "local-lvm:cloudinit,media=cdrom"), option("ipconfig0", "ip="+address+",gw=192.168.77.1"),
	}
	for _, key := range slices.Sorted(maps.Keys(more)) {
		options = append(options, option(key, more[key]))
	}
	vm := w.vm(t, id)
	task, err := vm.Config(t.Context(), options...)
	done(t, task, err)
	return w.vm(t, id)
}
