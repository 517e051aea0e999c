package proxmox

import "strings"

// agentEnabled reads the option "agent", whose first part may have no key.
func agentEnabled(g *guest) bool {
	return isTrue(property(strings.TrimSpace(g.Config["agent"]), "enabled"))
}

// agent asks a VM's guest agent for its interfaces, which is how the host knows that it runs. Its words are from PVE/QemuServer/Agent.pm of
// qemu-server 8.3.13.
func (s *Server) agent(r *request) ([]Interface, error) {
	s.mu.Lock()
	g, err := s.guestOf(r)
	if err == nil {
		switch {
		case !agentEnabled(g):
			err = internal("No QEMU guest agent configured")
		case !g.Running:
			err = internal("VM %d is not running", g.ID)
		}
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	interfaces, runs := s.machines.Interfaces(g.ID)
	if !runs {
		return nil, internal("QEMU guest agent is not running")
	}
	return interfaces, nil
}

func (s *Server) agentPing(r *request) (any, error) {
	if _, err := s.agent(r); err != nil {
		return nil, err
	}
	return map[string]any{"result": map[string]any{}}, nil
}

func (s *Server) agentInterfaces(r *request) (any, error) {
	interfaces, err := s.agent(r)
	if err != nil {
		return nil, err
	}
	list := []map[string]any{}
	for _, i := range interfaces {
		addresses := []map[string]any{}
		for _, prefix := range i.Addresses {
			kind := "ipv4"
			if prefix.Addr().Is6() {
				kind = "ipv6"
			}
			addresses = append(addresses, map[string]any{
				"ip-address": prefix.Addr().String(), "ip-address-type": kind, "prefix": prefix.Bits(),
			})
		}
		list = append(list, map[string]any{
			"name": i.Name, "hardware-address": strings.ToLower(i.MAC), "ip-addresses": addresses,
		})
	}
	return map[string]any{"result": list}, nil
}
