package proxmox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tazlab.net/castle/ci/sandbox/profile"
)

// cloning is a checked request for a clone.
type cloning struct {
	source            *guest
	id                int
	node, storage     string
	name, description string
	full              bool
}

// cloneRequest checks everything that a host checks before it starts the task; s.mu is held.
func (s *Server) cloneRequest(r *request) (cloning, error) {
	c := cloning{
		node: r.http.PathValue("node"), storage: r.params.Get("storage"),
		name: r.params.Get("name"), description: r.params.Get("description"),
	}
	var err error
	if c.id, err = strconv.Atoi(r.params.Get("newid")); err != nil {
		return c, err
	}
	id, _ := strconv.Atoi(r.http.PathValue("vmid"))
	c.source = s.state.Guests[id]
	if c.source == nil || c.source.Node != c.node {
		return c, internal("unable to find configuration file for VM %s on node '%s'", r.http.PathValue("vmid"), c.node)
	}
	c.full = isTrue(r.params.Get("full")) || !r.params.Has("full") && !c.source.template()
	if !c.full {
		if err := s.mayLink(c.source); err != nil {
			return c, err
		}
	}
	if c.storage != "" {
		if !c.full {
			return c, invalid(map[string]string{"storage": "parameter not allowed for linked clones"})
		}
		if _, err := s.storage(c.storage); err != nil {
			return c, err
		}
	}
	if target := r.params.Get("target"); target != "" && target != c.node {
		if !slices.ContainsFunc(s.nodes, func(n Node) bool { return n.Name == target }) {
			return c, internal("no such cluster node '%s'", target)
		}
		// qemu-server, src/PVE/API2/Qemu.pm, clone_vm: the storage that is named has to be shared, and then those of the source's disks, cloud-init
		// drives left out.
		if storage, err := s.storage(c.storage); c.storage != "" && err == nil && !storage.Shared {
			return c, internal("can't clone to non-shared storage '%s'", c.storage)
		}
		for _, disk := range s.disks(c.source) {
			if storage, err := s.storage(parseDrive(disk.Volume).storage()); err == nil && !storage.Shared {
				return c, internal("can't clone VM to node '%s' (VM uses local storage)", target)
			}
		}
		c.node = target
	}
	if err := s.usable(c.source); err != nil {
		return c, err
	}
	if err := s.mayClone(c); err != nil {
		return c, err
	}
	return c, s.vacant(c.id)
}

// mayLink refuses a linked clone of a disk that is not a template's, or whose storage has none: qemu-server, src/PVE/API2/Qemu.pm, clone_vm, and
// the feature "clone" of pve-storage's plugins, which those of lvm and iscsi have not. A cloud-init drive is copied in any case.
func (s *Server) mayLink(source *guest) error {
	for _, disk := range s.disks(source) {
		storage, err := s.storage(parseDrive(disk.Volume).storage())
		if err != nil {
			return err
		}
		if !source.template() || slices.Contains([]string{"lvm", "iscsi", "iscsidirect"}, storage.Type) {
			return internal("Linked clone feature is not supported for drive '%s'", disk.Interface)
		}
	}
	return nil
}

// clone copies a VM or a template. The new VM is there at once and locked until the task ends; when the task fails, it
// is gone.
func (s *Server) clone(r *request) (any, error) {
	if id, err := strconv.Atoi(r.http.PathValue("vmid")); err == nil {
		if err := s.moody(id); err != nil {
			return nil, err
		}
	}
	var c cloning
	var t *task
	err := s.change(func() (err error) {
		if c, err = s.cloneRequest(r); err != nil {
			return err
		}
		s.state.Guests[c.id] = &guest{ID: c.id, Node: c.node, Config: map[string]string{"lock": "clone"}}
		t = s.begin("qmclone", r.http.PathValue("node"), c.source.ID, r.user)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.work(t, func(ctx context.Context, w worker) error {
		err := s.copy(ctx, w, c)
		if err == nil || errors.Is(context.Cause(ctx), errPowerCut) {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.state.Guests, c.id)
		return fmt.Errorf("clone failed: %w", err)
	})
	return t.UPID, nil
}

// copy waits for the template's storage, takes the time of a copy and makes the new VM.
func (s *Server) copy(ctx context.Context, w worker, c cloning) error {
	release, free := s.clonings.try(c.source.ID)
	if !free {
		w.log("trying to acquire lock...")
		var err error
		if release, err = s.clonings.wait(ctx, c.source.ID); err != nil {
			return err
		}
		w.log(" OK")
	}
	defer release()
	s.mu.Lock()
	disks := s.disks(c.source)
	s.mu.Unlock()
	way, delay := "full", s.profile.Delays.VMClone
	if !c.full {
		way, delay = "linked", s.profile.Delays.VMConfig // a snapshot of the base volume
	}
	for _, disk := range disks {
		w.log("create %s clone of drive %s (%s)", way, disk.Interface, disk.Volume)
	}
	if s.profile.Faults.Is(profile.CloneFails, c.id) || s.full(c, disks) {
		if err := s.profile.Sleep(ctx, delay/3); err != nil {
			return err
		}
		return internal("lvcreate 'pve/vm-%d-disk-0' error:   Cannot create new thin volume, free space in thin pool pve/data reached threshold.", c.id)
	}
	for _, disk := range disks {
		if err := s.storageLock(ctx, cmp.Or(c.storage, parseDrive(disk.Volume).storage())); err != nil {
			return err
		}
	}
	if err := s.profile.Sleep(ctx, delay); err != nil {
		return err
	}
	for _, disk := range disks {
		size := fmt.Sprintf("%.1f GiB", float64(disk.Bytes)/(1<<30))
		w.log("transferred %s of %s (100.00%%)", size, size)
	}
	return s.change(func() error {
		g := s.state.Guests[c.id]
		config, volumes, err := s.copied(c)
		if err != nil {
			return err
		}
		g.Config, s.state.Volumes = config, volumes
		return nil
	})
}

// full tells that there is no room for a disk of the clone.
func (s *Server) full(c cloning, disks []Disk) bool {
	return slices.ContainsFunc(disks, func(disk Disk) bool {
		return s.profile.Faults.Is(profile.StorageFull, cmp.Or(c.storage, parseDrive(disk.Volume).storage()))
	})
}

// copied is the new VM's configuration and all volumes with its own; s.mu is held.
func (s *Server) copied(c cloning) (map[string]string, map[string]*volume, error) {
	volumes := maps.Clone(s.state.Volumes)
	config := map[string]string{}
	for name, value := range c.source.Config {
		prefix, _, _ := family(name)
		switch {
		case name == "template" || name == "lock" || prefix == "unused":
		case prefix == "net":
			config[name] = withMAC(value, newMAC())
		case !isDrive(name):
			config[name] = value
		}
	}
	for _, name := range driveNames(c.source.Config) {
		d := parseDrive(c.source.Config[name])
		v := volumes[d.file]
		if v == nil { // a CD drive
			config[name] = c.source.Config[name]
			continue
		}
		storageID := d.storage()
		if c.storage != "" {
			storageID = c.storage
		}
		storage, err := s.storage(storageID)
		if err != nil {
			return nil, nil, err
		}
		if d.isCloudInit(c.source.ID) {
			if d.file, err = s.newCloudInit(volumes, storage, c.id); err != nil {
				return nil, nil, err
			}
		} else {
			d.file = s.newVolumeIn(volumes, storage, c.id, v.Bytes)
		}
		config[name] = d.print(volumes[d.file])
	}
	known(config, newUUID())
	config["name"] = c.name
	if c.name == "" {
		config["name"] = "Copy-of-VM-" + strings.ReplaceAll(c.source.name(), " ", "-")
	}
	delete(config, "description")
	if c.description != "" {
		config["description"] = c.description
	}
	return config, volumes, nil
}

// withMAC replaces the address of a network device.
func withMAC(value, mac string) string {
	device, rest, more := strings.Cut(value, ",")
	model, _, _ := strings.Cut(device, "=")
	value = model + "=" + mac
	if more {
		value += "," + rest
	}
	return value
}

// makeTemplate turns a stopped VM into a template.
func (s *Server) makeTemplate(r *request) (any, error) {
	g, err := s.find(r)
	if err != nil {
		return nil, err
	}
	if err := s.moody(g.ID); err != nil {
		return nil, err
	}
	return s.launch("qmtemplate", g, r.user, func(ctx context.Context, w worker) error {
		return s.exclusive(ctx, g.ID, func() error {
			if err := s.profile.Sleep(ctx, s.profile.Delays.VMConfig); err != nil {
				return err
			}
			return s.change(func() error {
				if err := s.usable(g); err != nil {
					return err
				}
				if g.Running {
					return internal("you can't convert a running VM to a template")
				}
				for _, disk := range s.disks(g) {
					base := strings.Replace(disk.Volume, "vm-", "base-", 1)
					s.state.Volumes[base] = s.state.Volumes[disk.Volume]
					delete(s.state.Volumes, disk.Volume)
					d := parseDrive(g.Config[disk.Interface])
					d.file = base
					g.Config[disk.Interface] = d.print(s.state.Volumes[base])
				}
				g.Config["template"] = "1"
				return nil
			})
		})
	})
}

// migrate moves a VM to another node; its disks on storages that are not shared take the time of a clone.
func (s *Server) migrate(r *request) (any, error) {
	g, err := s.find(r)
	if err != nil {
		return nil, err
	}
	target := r.params.Get("target")
	if target == g.Node {
		return nil, invalid(map[string]string{"target": "target is local node."})
	}
	if !slices.ContainsFunc(s.nodes, func(n Node) bool { return n.Name == target }) {
		return nil, internal("no such cluster node '%s'", target)
	}
	if err := s.moody(g.ID); err != nil {
		return nil, err
	}
	return s.launch("qmigrate", g, r.user, func(ctx context.Context, w worker) error {
		return s.exclusive(ctx, g.ID, func() error {
			if err := s.profile.Sleep(ctx, s.profile.Delays.VMClone); err != nil {
				return err
			}
			return s.change(func() error {
				if err := s.usable(g); err != nil {
					return err
				}
				if g.Running && !isTrue(r.params.Get("online")) {
					return internal("can't migrate running VM without --online")
				}
				g.Node = target
				return nil
			})
		})
	})
}
