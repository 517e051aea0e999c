package proxmox

import (
	"context"
	"maps"
	"slices"
	"strings"

	"tazlab.net/castle/ci/sandbox/profile"
)

// destroy removes a stopped VM, and its disks as far as their storages let go of them.
func (s *Server) destroy(r *request) (any, error) {
	g, err := s.find(r)
	if err != nil {
		return nil, err
	}
	if err := s.moody(g.ID); err != nil {
		return nil, err
	}
	removable := func() error {
		if g.Config["protection"] == "1" {
			return internal("can't remove VM %d - protection mode enabled", g.ID)
		}
		if err := s.usable(g); err != nil {
			return err
		}
		if g.Running {
			return internal("VM %d is running - destroy failed", g.ID)
		}
		return nil
	}
	s.mu.Lock()
	err = removable()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.launch("qmdestroy", g, r.user, func(ctx context.Context, w worker) error {
		return s.exclusive(ctx, g.ID, func() error {
			if err := s.profile.Sleep(ctx, s.profile.Delays.VMDelete); err != nil {
				return err
			}
			freed, err := s.free(ctx, w, g, isTrue(r.params.Get("destroy-unreferenced-disks")))
			if err != nil {
				return err
			}
			return s.change(func() error {
				if err := removable(); err != nil {
					return err
				}
				delete(s.state.Guests, g.ID)
				for _, id := range freed {
					delete(s.state.Volumes, id)
				}
				s.events.add(func() { s.machines.Removed(g.ID) })
				return nil
			})
		})
	})
}

// free says which volumes go with a VM: destroy_vm of qemu-server 8.3.13, PVE/QemuServer.pm. Those that its configuration names and that are its
// own go, then those of its id that no configuration names, where that is asked for. A storage that does not let go of one is a line in the task's
// log, and the VM goes all the same, with a task that ends well; the volume stays behind, and keeps its number.
func (s *Server) free(ctx context.Context, w worker, g *guest, unreferenced bool) (freed []string, err error) {
	s.mu.Lock()
	var named, owned []string
	for _, name := range slices.Concat(driveNames(g.Config), unusedNames(g.Config)) {
		id := parseDrive(g.Config[name]).file
		if v := s.state.Volumes[id]; v != nil && v.Owner == g.ID && !slices.Contains(named, id) {
			named = append(named, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.state.Volumes)) {
		if s.state.Volumes[id].Owner == g.ID {
			owned = append(owned, id)
		}
	}
	s.mu.Unlock()
	stays := s.profile.Faults.Is(profile.DiskStays, g.ID)
	for _, id := range named {
		if !stays {
			freed = append(freed, id)
			continue
		}
		refused, err := s.notToBeHad(ctx, parseDrive(id).storage())
		if err != nil {
			return nil, err
		}
		w.log("Could not remove disk '%s', check manually: %s", id, refused)
	}
	if !unreferenced {
		return freed, nil
	}
	for _, id := range owned {
		switch {
		case slices.Contains(freed, id):
		case !stays:
			freed = append(freed, id)
		default:
			refused, err := s.notToBeHad(ctx, parseDrive(id).storage())
			if err != nil {
				return nil, err
			}
			w.log("%s", refused)
		}
	}
	return freed, nil
}

// unusedNames are the options of disks that are attached to nothing.
func unusedNames(config map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(config)), func(name string) bool { return !strings.HasPrefix(name, "unused") })
}
