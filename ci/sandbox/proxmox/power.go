package proxmox

import (
	"context"
	"strings"
	"time"
)

// start gives a VM power. Its words and those of what follows are from PVE/QemuServer.pm (vm_start_nolock) and PVE/API2/Qemu.pm (vm_start, vm_stop,
// vm_shutdown, vm_reset, vm_reboot) of qemu-server 8.3.13.
func (s *Server) start(r *request) (any, error) {
	g, err := s.find(r)
	if err != nil {
		return nil, err
	}
	if err := s.moody(g.ID); err != nil {
		return nil, err
	}
	return s.launch("qmstart", g, r.user, func(ctx context.Context, w worker) error {
		return s.exclusive(ctx, g.ID, func() error {
			startable := func() error {
				if err := s.usable(g); err != nil {
					return err
				}
				if g.template() {
					return internal("you can't start a vm if it's a template")
				}
				if g.Running {
					return internal("VM %d already running", g.ID)
				}
				return s.bridgesExist(g)
			}
			s.mu.Lock()
			err := startable()
			s.mu.Unlock()
			if err != nil {
				return err
			}
			if err := s.profile.Sleep(ctx, s.profile.Delays.VMStart); err != nil {
				return err
			}
			return s.change(func() error {
				if err := startable(); err != nil {
					return err
				}
				s.powerOn(g)
				return nil
			})
		})
	})
}

// bridgesExist checks what the start of a VM's network devices needs; s.mu is held.
func (s *Server) bridgesExist(g *guest) error {
	for name, value := range g.Config {
		if prefix, _, _ := family(name); prefix != "net" {
			continue
		}
		if bridge := property(value, "bridge"); strings.Contains(value, "bridge=") && !s.hasBridge(bridge) {
			return internal("bridge '%s' does not exist", bridge)
		}
	}
	return nil
}

func (s *Server) hasBridge(name string) bool {
	for _, bridge := range s.bridges {
		if bridge == name {
			return true
		}
	}
	return false
}

// halt takes a VM's power away. A guest that is shut down does not resist.
func (s *Server) halt(kind string) handler {
	return func(r *request) (any, error) {
		g, err := s.find(r)
		if err != nil {
			return nil, err
		}
		if err := s.moody(g.ID); err != nil {
			return nil, err
		}
		return s.launch(kind, g, r.user, func(ctx context.Context, w worker) error {
			return s.exclusive(ctx, g.ID, func() error {
				s.mu.Lock()
				running, locked := g.Running, s.usable(g)
				s.mu.Unlock()
				if locked != nil {
					return locked
				}
				if !running {
					w.log("VM not running")
					return nil
				}
				if err := s.profile.Sleep(ctx, s.profile.Delays.VMStop); err != nil {
					return err
				}
				return s.change(func() error {
					if g.Running {
						s.powerOff(g)
					}
					return nil
				})
			})
		})
	}
}

// restart takes the power away and gives it back.
func (s *Server) restart(kind string) handler {
	return func(r *request) (any, error) {
		g, err := s.find(r)
		if err != nil {
			return nil, err
		}
		if err := s.moody(g.ID); err != nil {
			return nil, err
		}
		return s.launch(kind, g, r.user, func(ctx context.Context, w worker) error {
			return s.exclusive(ctx, g.ID, func() error {
				running := func() error {
					if err := s.usable(g); err != nil {
						return err
					}
					if !g.Running {
						return internal("VM %d not running", g.ID)
					}
					return nil
				}
				steps := []struct {
					delay time.Duration
					do    func()
				}{
					{s.profile.Delays.VMStop, func() { s.powerOff(g) }},
					{s.profile.Delays.VMStart, func() { s.powerOn(g) }},
				}
				s.mu.Lock()
				err := running()
				s.mu.Unlock()
				if err != nil {
					return err
				}
				for _, step := range steps {
					if err := s.profile.Sleep(ctx, step.delay); err != nil {
						return err
					}
					if err := s.change(func() error { step.do(); return nil }); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}
