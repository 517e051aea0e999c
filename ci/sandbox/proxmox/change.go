package proxmox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// edit is a configuration after a change, before it is taken over.
type edit struct {
	config  map[string]string
	volumes map[string]*volume
}

// prepare works out a change without making it; s.mu is held.
func (s *Server) prepare(g *guest, params url.Values) (edit, error) {
	mistakes := map[string]string{}
	e := edit{config: maps.Clone(g.Config), volumes: maps.Clone(s.state.Volumes)}
	deleted := splitTags(params.Get("delete"))
	for _, name := range deleted {
		switch {
		case !optionExists(name):
			mistakes["delete"] = fmt.Sprintf("unknown option '%s'", name)
		case params.Has(name):
			mistakes["delete"] = fmt.Sprintf("you can't use '-%s' and -delete %s' at the same time", name, name)
		}
	}
	values := map[string]string{}
	for name := range params {
		switch {
		case !optionExists(name):
		case isDrive(name):
			values[name] = params.Get(name)
		default:
			values[name] = normal(name, params.Get(name))
		}
	}
	if err := invalid(mistakes); err != nil {
		return e, err
	}
	if err := s.mayChange(g.ID, g.Config, params); err != nil {
		return e, err
	}
	if digest := params.Get("digest"); digest != "" && digest != g.digest() {
		return e, internal("detected modified configuration - file changed by other user? Try again.")
	}
	for _, name := range deleted {
		if isDrive(name) || strings.HasPrefix(name, "unused") {
			detach(e.volumes, e.config, g.ID, name)
		}
		delete(e.config, name)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		if !isDrive(name) {
			e.config[name] = value
			if name == "tags" && value == "" || name == "description" && value == "" {
				delete(e.config, name)
			}
			continue
		}
		if before := e.config[name]; before != "" && parseDrive(before).file != parseDrive(value).file {
			detach(e.volumes, e.config, g.ID, name)
		}
		attached, err := s.attach(e.volumes, g, name, value)
		if err != nil {
			return e, err
		}
		e.config[name] = attached
	}
	// update_vm_api of qemu-server 8.3.13, PVE/API2/Qemu.pm.
	if params.Has("memory") || params.Has("balloon") {
		after := guest{Config: e.config}
		if after.number("balloon", 0) > after.memoryMiB() {
			return e, internal("balloon value too large (must be smaller than assigned memory)")
		}
	}
	return e, nil
}

// take makes a prepared change; s.mu is held.
func (s *Server) take(g *guest, e edit) {
	g.Config, s.state.Volumes = e.config, e.volumes
}

// exclusive holds a VM's configuration for the time of a function, as the host's lock file does.
func (s *Server) exclusive(ctx context.Context, id int, do func() error) error {
	waiting, cancel := context.WithTimeout(ctx, configLockTimeout)
	defer cancel()
	release, err := s.configs.wait(waiting, id)
	if err != nil {
		return lockTimeout(id)
	}
	defer release()
	return do()
}

// configPut changes a configuration and answers when that is done.
func (s *Server) configPut(r *request) (any, error) {
	g, err := s.find(r)
	if err != nil {
		return nil, err
	}
	if err := s.moody(g.ID); err != nil {
		return nil, err
	}
	return nil, s.exclusive(r.http.Context(), g.ID, func() error {
		return s.reconfigure(s.ctx, r, g.ID)
	})
}

// reconfigure checks a change, takes its time and makes it.
func (s *Server) reconfigure(ctx context.Context, r *request, id int) error {
	check := func() (*guest, edit, error) {
		g, err := s.guestOf(r)
		if err != nil {
			return nil, edit{}, err
		}
		if err := s.usable(g); err != nil {
			return nil, edit{}, err
		}
		e, err := s.prepare(g, r.params)
		return g, e, err
	}
	s.mu.Lock()
	_, e, err := check()
	made := s.made(e)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, storage := range made {
		if err := s.storageLock(ctx, storage); err != nil {
			return err
		}
	}
	if err := s.profile.Sleep(ctx, s.profile.Delays.VMConfig); err != nil {
		return errPowerCut
	}
	return s.change(func() error {
		g, e, err := check()
		if err == nil {
			s.take(g, e)
		}
		return err
	})
}

// configPost is configPut as a task.
func (s *Server) configPost(r *request) (any, error) {
	s.mu.Lock()
	g, err := s.guestOf(r)
	if err == nil {
		if err = s.usable(g); err == nil {
			_, err = s.prepare(g, r.params)
		}
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := s.moody(g.ID); err != nil {
		return nil, err
	}
	return s.launch("qmconfig", g, r.user, func(ctx context.Context, w worker) error {
		return s.exclusive(ctx, g.ID, func() error { return s.reconfigure(ctx, r, g.ID) })
	})
}

// cloudInitRebuild writes the cloud-init drive anew; its content follows from the configuration at any time.
func (s *Server) cloudInitRebuild(r *request) (any, error) {
	_, err := s.find(r)
	return nil, err
}

// resize makes a disk larger.
func (s *Server) resize(r *request) (any, error) {
	g, err := s.find(r)
	if err != nil {
		return nil, err
	}
	name := r.params.Get("disk")
	wanted, more, _ := parseSize(r.params.Get("size"))
	if err := s.moody(g.ID); err != nil {
		return nil, err
	}
	// disk returns the disk and its size afterwards.
	disk := func() (drive, int64, error) {
		if err := s.usable(g); err != nil {
			return drive{}, 0, err
		}
		value, exists := g.Config[name]
		if !exists {
			return drive{}, 0, internal("disk '%s' does not exist", name)
		}
		d := parseDrive(value)
		v := s.state.Volumes[d.file]
		if v == nil {
			return drive{}, 0, internal("you can't resize a cdrom")
		}
		size := wanted
		if more {
			size += v.Bytes
		}
		if size < v.Bytes {
			return drive{}, 0, internal("shrinking disks is not supported")
		}
		return d, size, s.acl.check("/storage/"+d.storage(), "Datastore.AllocateSpace")
	}
	s.mu.Lock()
	_, _, err = disk()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.launch("resize", g, r.user, func(ctx context.Context, w worker) error {
		return s.exclusive(ctx, g.ID, func() error {
			if err := s.profile.Sleep(ctx, s.profile.Delays.VMConfig); err != nil {
				return err
			}
			return s.change(func() error {
				d, size, err := disk()
				if err != nil {
					return err
				}
				s.state.Volumes[d.file].Bytes = size
				g.Config[name] = d.print(s.state.Volumes[d.file])
				return nil
			})
		})
	})
}

// moveDisk copies a disk to another storage.
func (s *Server) moveDisk(r *request) (any, error) {
	g, err := s.find(r)
	if err != nil {
		return nil, err
	}
	name := r.params.Get("disk")
	target, err := s.storage(r.params.Get("storage"))
	if err != nil {
		return nil, err
	}
	if err := s.moody(g.ID); err != nil {
		return nil, err
	}
	check := func() (drive, error) {
		if err := s.usable(g); err != nil {
			return drive{}, err
		}
		if err := s.acl.check("/storage/"+target.ID, "Datastore.AllocateSpace"); err != nil {
			return drive{}, err
		}
		d := parseDrive(g.Config[name])
		if s.state.Volumes[d.file] == nil {
			return drive{}, internal("disk '%s' does not exist", name)
		}
		if d.storage() == target.ID {
			return drive{}, internal("you can't move to the same storage with same format")
		}
		return d, nil
	}
	s.mu.Lock()
	_, err = check()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.launch("qmmove", g, r.user, func(ctx context.Context, w worker) error {
		return s.exclusive(ctx, g.ID, func() error {
			if err := s.profile.Sleep(ctx, s.profile.Delays.VMClone); err != nil {
				return err
			}
			if err := s.storageLock(ctx, target.ID); err != nil {
				return fmt.Errorf("storage migration failed: %w", err)
			}
			return s.change(func() error {
				d, err := check()
				if err != nil {
					return err
				}
				old := d.file
				d.file = s.newVolume(target, g.ID, s.state.Volumes[old].Bytes)
				if isTrue(r.params.Get("delete")) {
					delete(s.state.Volumes, old)
				} else {
					detach(s.state.Volumes, g.Config, g.ID, name)
				}
				g.Config[name] = d.print(s.state.Volumes[d.file])
				return nil
			})
		})
	})
}

// create makes a VM that is no clone.
func (s *Server) create(r *request) (any, error) {
	id, err := strconv.Atoi(r.params.Get("vmid"))
	if err != nil {
		return nil, err
	}
	start := isTrue(r.params.Get("start"))
	if err := s.moody(id); err != nil {
		return nil, err
	}
	g := &guest{ID: id, Node: r.http.PathValue("node"), Config: map[string]string{}}
	var t *task
	err = s.change(func() error {
		if err := s.vacant(id); err != nil {
			return internal("unable to create VM %d - %s", id, err)
		}
		if _, err := s.prepare(g, r.params); err != nil {
			return err
		}
		g.Config = map[string]string{"lock": "create"}
		s.state.Guests[id] = g
		t = s.begin("qmcreate", g.Node, id, r.user)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.work(t, func(ctx context.Context, w worker) error {
		err := s.profile.Sleep(ctx, s.profile.Delays.VMConfig)
		if errors.Is(context.Cause(ctx), errPowerCut) {
			return err
		}
		return s.change(func() error {
			var e edit
			if err == nil {
				g.Config = map[string]string{}
				e, err = s.prepare(g, r.params)
			}
			if err != nil {
				delete(s.state.Guests, g.ID)
				w.task.Lines = append(w.task.Lines, "unable to create VM: "+err.Error())
				return err
			}
			s.take(g, e)
			if g.Config[smbios] == "" {
				known(g.Config, newUUID())
			}
			if start {
				s.powerOn(g)
			}
			return nil
		})
	})
	return t.UPID, nil
}

// vacant tells whether an id is free; s.mu is held.
func (s *Server) vacant(id int) error {
	if other, taken := s.state.Guests[id]; taken {
		return internal("VM %d already exists on node '%s'", id, other.Node)
	}
	return nil
}
