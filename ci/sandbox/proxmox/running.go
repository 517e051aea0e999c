package proxmox

// Running is how many VMs have power.
func (s *Server) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := 0
	for _, g := range s.state.Guests {
		if g.Running {
			running++
		}
	}
	return running
}
