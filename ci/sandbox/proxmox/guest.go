package proxmox

import (
	"cmp"
	"crypto/sha1"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// guestOf finds the VM of a request's path; s.mu is held.
func (s *Server) guestOf(r *request) (*guest, error) {
	node := r.http.PathValue("node")
	id, err := strconv.Atoi(r.http.PathValue("vmid"))
	if err != nil {
		return nil, err
	}
	g, exists := s.state.Guests[id]
	if !exists || g.Node != node {
		return nil, missing(node, id)
	}
	return g, nil
}

func missing(node string, id int) error {
	return internal("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", node, id)
}

// find is guestOf for who does not hold s.mu.
func (s *Server) find(r *request) (*guest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.guestOf(r)
}

// usable is the error that every change of a locked VM ends with, or of one that is gone by now; s.mu is held.
func (s *Server) usable(g *guest) error {
	if s.state.Guests[g.ID] != g {
		return missing(g.Node, g.ID)
	}
	if lock := g.Config["lock"]; lock != "" {
		return internal("VM is locked (%s)", lock)
	}
	return nil
}

// maxDisk is the size of the disk that the VM boots from; s.mu is held.
func (s *Server) maxDisk(g *guest) int64 {
	for _, disk := range s.disks(g) {
		return disk.Bytes
	}
	return 0
}

// disks are without the cloud-init drive, EFI and TPM volumes; s.mu is held.
func (s *Server) disks(g *guest) []Disk {
	var disks []Disk
	for _, name := range driveNames(g.Config) {
		d := parseDrive(g.Config[name])
		v := s.state.Volumes[d.file]
		if prefix, _, _ := family(name); v == nil || prefix == "efidisk" || prefix == "tpmstate" || d.isCloudInit(g.ID) {
			continue
		}
		disks = append(disks, Disk{Interface: name, Volume: d.file, Bytes: v.Bytes})
	}
	return disks
}

func (g *guest) number(option string, otherwise int) int {
	return positive(g.Config[option], otherwise)
}

func (g *guest) cpus() int { return g.number("cores", 1) * g.number("sockets", 1) }

const defaultMemoryMiB = 512

func (g *guest) memoryMiB() int { return g.number("memory", defaultMemoryMiB) }

// machine is a VM as its configuration describes it; s.mu is held.
func (s *Server) machine(g *guest) VM {
	vm := VM{
		ID: g.ID, Name: g.name(), Node: g.Node, Cores: g.cpus(), MemoryMiB: g.memoryMiB(),
		Disks: s.disks(g), Tags: splitTags(g.Config["tags"]),
	}
	vm.Address, _ = netip.ParsePrefix(property(g.Config["ipconfig0"], "ip"))
	vm.Gateway, _ = netip.ParseAddr(property(g.Config["ipconfig0"], "gw"))
	for _, server := range strings.Fields(g.Config["nameserver"]) {
		if address, err := netip.ParseAddr(server); err == nil {
			vm.DNS = append(vm.DNS, address)
		}
	}
	_, mac, _ := strings.Cut(strings.Split(g.Config["net0"], ",")[0], "=")
	vm.MAC = mac
	vm.UUID, _ = keyed(g.Config[smbios], "uuid")
	return vm
}

// seeded adds a VM; s.mu is held.
func (s *Server) seeded(seed Guest) (*guest, error) {
	if seed.ID < 100 {
		return nil, fmt.Errorf("ids begin at 100")
	}
	node := seed.Node
	if node == "" {
		node = s.nodes[0].Name
	}
	if !slices.ContainsFunc(s.nodes, func(n Node) bool { return n.Name == node }) {
		return nil, fmt.Errorf("there is no node %q", node)
	}
	config := map[string]string{
		"boot": "order=scsi0", "ostype": "l26", "scsihw": "virtio-scsi-single", "cores": "1", "memory": strconv.Itoa(defaultMemoryMiB),
		"net0": "virtio,bridge=" + s.bridges[0], "template": flag(seed.Template),
	}
	if !seed.Template {
		delete(config, "template")
	}
	set := func(name, value string) {
		if value != "" {
			config[name] = value
		}
	}
	known(config, cmp.Or(seed.UUID, newUUID()))
	set("name", seed.Name)
	set("tags", strings.Join(seed.Tags, ";"))
	if seed.Cores > 0 {
		set("cores", strconv.Itoa(seed.Cores))
	}
	if seed.MemoryMiB > 0 {
		set("memory", strconv.Itoa(seed.MemoryMiB))
	}
	if seed.MAC != "" {
		config["net0"] = "virtio=" + seed.MAC + ",bridge=" + s.bridges[0]
	}
	if seed.Address.IsValid() {
		config["ipconfig0"] = "ip=" + seed.Address.String()
		if seed.Gateway.IsValid() {
			config["ipconfig0"] += ",gw=" + seed.Gateway.String()
		}
	}
	var dns []string
	for _, server := range seed.DNS {
		dns = append(dns, server.String())
	}
	set("nameserver", strings.Join(dns, " "))
	maps.Copy(config, seed.Config)

	g := &guest{ID: seed.ID, Node: node, Config: map[string]string{}, Running: seed.Running}
	volumes := maps.Clone(s.state.Volumes)
	for name, value := range config {
		if name == "lock" {
			g.Config[name] = value
			continue
		}
		if !optionExists(name) {
			return nil, fmt.Errorf("there is no option %q", name)
		}
		if mistake := configuration[name].mistake(name, value); mistake != "" {
			return nil, fmt.Errorf("%s: %s", name, mistake)
		}
		if !isDrive(name) {
			g.Config[name] = normal(name, value)
			continue
		}
		attached, err := s.attach(volumes, g, name, value)
		if err != nil {
			return nil, err
		}
		g.Config[name] = attached
	}
	for _, disk := range seed.Disks {
		id := disk.Volume
		if id == "" {
			id = s.newVolumeIn(volumes, s.diskStorage(), g.ID, disk.Bytes)
			if seed.Template {
				v := volumes[id]
				delete(volumes, id)
				id = strings.Replace(id, "vm-", "base-", 1)
				volumes[id] = v
			}
		} else if _, err := s.storage(parseDrive(id).storage()); err != nil {
			return nil, err
		} else {
			volumes[id] = &volume{Owner: owner(id, g.ID), Bytes: disk.Bytes, Format: "raw"}
		}
		g.Config[disk.Interface] = drive{file: id}.print(volumes[id])
	}
	s.state.Volumes = volumes
	s.state.Guests[g.ID] = g
	return g, nil
}

// owned is the name of a volume, which says whose it is: parse_volname of pve-storage 8.3.6, src/PVE/Storage/LvmThinPlugin.pm.
var owned = regexp.MustCompile(`^(?:vm|base)-([0-9]+)-`)

// owner is the id that the name of a volume has, whose configuration may be another VM's.
func owner(volume string, otherwise int) int {
	_, name, _ := strings.Cut(volume, ":")
	if match := owned.FindStringSubmatch(name[strings.LastIndex(name, "/")+1:]); match != nil {
		if id, err := strconv.Atoi(match[1]); err == nil {
			return id
		}
	}
	return otherwise
}

// powerOn marks a VM as running and tells it; s.mu is held.
func (s *Server) powerOn(g *guest) {
	s.state.PID++
	g.Running, g.Started, g.PID = true, time.Now(), s.state.PID
	g.Starts++
	s.notifyPowerOn(g)
}

func (s *Server) notifyPowerOn(g *guest) {
	vm := s.machine(g)
	s.told[g.ID] = true
	s.events.add(func() { s.machines.PowerOn(vm) })
}

// powerOff does the opposite; s.mu is held.
func (s *Server) powerOff(g *guest) {
	g.Running, g.Started, g.PID = false, time.Time{}, 0
	id := g.ID
	delete(s.told, id)
	s.events.add(func() { s.machines.PowerOff(id) })
}

// Stopped notes that a guest has switched itself off: its process has ended, as at the end of a shutdown from within.
func (s *Server) Stopped(id int) {
	_ = s.change(func() error { // that a power cut came first is nobody's business any more
		if g := s.state.Guests[id]; g != nil && g.Running {
			s.powerOff(g)
		}
		return nil
	})
}

// describe is a VM in lists and in its status; s.mu is held.
func (s *Server) describe(g *guest) map[string]any {
	shown := map[string]any{
		"vmid": g.ID, "name": g.name(), "status": g.status(),
		"cpus": g.cpus(), "maxmem": int64(g.memoryMiB()) << 20, "maxdisk": s.maxDisk(g),
		"cpu": 0, "mem": 0, "disk": 0, "diskread": 0, "diskwrite": 0, "netin": 0, "netout": 0, "uptime": 0,
	}
	if g.Running {
		shown["uptime"], shown["pid"] = int64(time.Since(g.Started).Seconds()), g.PID
		shown["cpu"], shown["mem"] = 0.01, int64(g.memoryMiB())<<19
	}
	if g.template() {
		shown["template"] = 1
	}
	for _, name := range []string{"tags", "lock"} {
		if value := g.Config[name]; value != "" {
			shown[name] = value
		}
	}
	return shown
}

func (s *Server) guestList(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []map[string]any{}
	for _, id := range s.guestIDs() {
		if g := s.state.Guests[id]; g.Node == r.http.PathValue("node") && s.acl.has(vmPath(id), "VM.Audit") {
			list = append(list, s.describe(g))
		}
	}
	return list, nil
}

func (s *Server) guestStatus(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.guestOf(r)
	if err != nil {
		return nil, err
	}
	shown := s.describe(g)
	shown["ha"], shown["qmpstatus"] = map[string]int{"managed": 0}, g.status()
	if agentEnabled(g) {
		shown["agent"] = 1
	}
	return shown, nil
}

// digest changes with the configuration; s.mu is held.
func (g *guest) digest() string {
	hash := sha1.New()
	for _, name := range slices.Sorted(maps.Keys(g.Config)) {
		fmt.Fprintf(hash, "%s: %s\n", name, g.Config[name])
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

func (s *Server) configGet(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.guestOf(r)
	if err != nil {
		return nil, err
	}
	shown := map[string]any{"digest": g.digest()}
	for name, value := range g.Config {
		shown[name] = typed(name, value)
		if name == "cipassword" {
			shown[name] = "**********"
		}
	}
	return shown, nil
}
