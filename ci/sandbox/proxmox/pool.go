package proxmox

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// poolID is in the path or, in the newer calls, a parameter.
func poolID(r *request) string {
	if id := r.http.PathValue("pool"); id != "" {
		return id
	}
	return r.params.Get("poolid")
}

// members are a pool's VMs; s.mu is held.
func (s *Server) members(id string) []map[string]any {
	list := []map[string]any{}
	for _, vmid := range s.guestIDs() {
		if g := s.state.Guests[vmid]; g.Pool == id {
			list = append(list, s.guestResource(g))
		}
	}
	return list
}

func (s *Server) existingPool(id string) (*pool, error) {
	p, exists := s.state.Pools[id]
	if !exists {
		return nil, internal("pool '%s' does not exist", id)
	}
	return p, nil
}

func (s *Server) poolList(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := poolID(r); id != "" {
		p, err := s.existingPool(id)
		if err != nil {
			return nil, err
		}
		return []map[string]any{{"poolid": id, "comment": p.Comment, "members": s.members(id)}}, nil
	}
	list := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(s.state.Pools)) {
		list = append(list, map[string]any{"poolid": id, "comment": s.state.Pools[id].Comment})
	}
	return list, nil
}

func (s *Server) poolGet(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.existingPool(poolID(r))
	if err != nil {
		return nil, err
	}
	return map[string]any{"comment": p.Comment, "members": s.members(poolID(r))}, nil
}

func (s *Server) poolCreate(r *request) (any, error) {
	id := poolID(r)
	if id == "" {
		return nil, invalid(map[string]string{"poolid": "property is missing and it is not optional"})
	}
	return nil, s.change(func() error {
		if _, exists := s.state.Pools[id]; exists {
			return internal("create pool failed: pool '%s' already exists", id)
		}
		s.state.Pools[id] = &pool{Comment: r.params.Get("comment")}
		return nil
	})
}

// poolUpdate changes the comment and adds or removes VMs.
func (s *Server) poolUpdate(r *request) (any, error) {
	id, remove := poolID(r), isTrue(r.params.Get("delete"))
	return nil, s.change(func() error {
		p, err := s.existingPool(id)
		if err != nil {
			return err
		}
		var guests []*guest
		for _, text := range strings.FieldsFunc(r.params.Get("vms"), func(c rune) bool { return c == ',' || c == ' ' || c == ';' }) {
			vmid, _ := strconv.Atoi(text)
			g := s.state.Guests[vmid]
			switch {
			case g == nil:
				return internal("update pools failed: VM %s does not exist", text)
			case remove && g.Pool != id:
				return internal("update pools failed: VM %d is not a pool member", vmid)
			case !remove && g.Pool == id:
				return internal("update pools failed: VM %d is already a pool member", vmid)
			case !remove && g.Pool != "" && !isTrue(r.params.Get("allow-move")):
				return internal("update pools failed: VM %d belongs already to pool '%s' and 'allow-move' is not set", vmid, g.Pool)
			}
			guests = append(guests, g)
		}
		for _, g := range guests {
			g.Pool = id
			if remove {
				g.Pool = ""
			}
		}
		if r.params.Has("comment") {
			p.Comment = r.params.Get("comment")
		}
		return nil
	})
}

func (s *Server) poolDelete(r *request) (any, error) {
	id := poolID(r)
	return nil, s.change(func() error {
		if _, err := s.existingPool(id); err != nil {
			return err
		}
		if len(s.members(id)) > 0 {
			return internal("delete pool failed: pool '%s' is not empty (contains VMs)", id)
		}
		delete(s.state.Pools, id)
		return nil
	})
}
