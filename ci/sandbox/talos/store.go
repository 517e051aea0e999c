package talos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"

	"github.com/google/renameio/v2"
)

// state is everything that outlives a power cut.
type state struct {
	Disks    map[int]*disk `json:"disks"`    // by VM id
	Clusters []*etcd       `json:"clusters"` // the member lists, of which each member has a copy in reality
	Haunted  []int         `json:"haunted"`  // VM ids that had their ghost, which a wipe ends
}

// disk is the content of a VM's disk.
type disk struct {
	Template *Template `json:"template,omitempty"` // as it was when the VM was cloned
	Config   []byte    `json:"config,omitempty"`   // installed machine configuration; secret
	Etcd     *dataDir  `json:"etcd,omitempty"`
	Blank    bool      `json:"blank,omitempty"` // wiped with its system: it does not start any more
}

// dataDir is etcd's data directory: whose member this machine is.
type dataDir struct {
	Cluster uint64 `json:"cluster"`
	Member  uint64 `json:"member"`
}

// etcd is one etcd cluster.
type etcd struct {
	ID      uint64    `json:"id"`
	CA      string    `json:"ca"` // fingerprint of the authority that its members' certificates come from
	Members []*member `json:"members"`
	Alarms  []uint64  `json:"alarms,omitempty"` // members that raised NOSPACE
	Lease   int       `json:"lease,omitempty"`  // VM that holds the virtual address, by a key under a lease

	leader uint64 // 0 without a quorum
	term   uint64
}

type member struct {
	ID      uint64     `json:"id"`
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	Learner bool       `json:"learner,omitempty"`
}

func load(path string) (*state, error) {
	s := &state{Disks: map[int]*disk{}}
	if path == "" {
		return s, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the machines' disks: %w", err)
	}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s does not hold the machines' disks: %w; remove it to start with empty ones", path, err)
	}
	return s, nil
}

// save replaces the file in one step.
func (s *state) save(path string) error {
	if path == "" {
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write the machines' disks: %w", err)
	}
	if err := renameio.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write the machines' disks: %w", err)
	}
	return nil
}

// disk is a VM's disk, an empty one at first.
func (s *state) disk(vm int) *disk {
	d := s.Disks[vm]
	if d == nil {
		d = &disk{}
		s.Disks[vm] = d
	}
	return d
}

func (s *state) cluster(id uint64) *etcd {
	for _, c := range s.Clusters {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// forget drops clusters that no disk is a member of any more.
func (s *state) forget() {
	held := map[uint64]bool{}
	for _, d := range s.Disks {
		if d.Etcd != nil {
			held[d.Etcd.Cluster] = true
		}
	}
	var kept []*etcd
	for _, c := range s.Clusters {
		if held[c.ID] {
			kept = append(kept, c)
		}
	}
	s.Clusters = kept
}

func (c *etcd) member(id uint64) *member {
	for _, m := range c.Members {
		if m.ID == id {
			return m
		}
	}
	return nil
}
