package proxmox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/google/renameio/v2"
)

// state is everything that outlives a power cut.
type state struct {
	Guests  map[int]*guest     `json:"guests"`
	Volumes map[string]*volume `json:"volumes"` // by volume id, such as local-lvm:vm-521-disk-0
	Tasks   []*task            `json:"tasks"`   // oldest first
	PID     int                `json:"pid"`     // of the last worker
}

// guest is a VM: its configuration file and whether it runs.
type guest struct {
	ID      int               `json:"id"`
	Node    string            `json:"node"`
	Config  map[string]string `json:"config"`
	Running bool              `json:"running,omitempty"`
	PID     int               `json:"pid,omitempty"`
	Started time.Time         `json:"started,omitzero"`
	Starts  int               `json:"starts,omitempty"` // how often it was given power
}

func (g *guest) name() string {
	if name := g.Config["name"]; name != "" {
		return name
	}
	return fmt.Sprintf("VM %d", g.ID)
}

func (g *guest) template() bool { return g.Config["template"] == "1" }

func (g *guest) status() string {
	if g.Running {
		return "running"
	}
	return "stopped"
}

type volume struct {
	Owner  int    `json:"owner"`
	Bytes  int64  `json:"bytes"`
	Format string `json:"format"`
}

func newState() *state {
	return &state{Guests: map[int]*guest{}, Volumes: map[string]*volume{}, PID: 1000}
}

// load reads the state's file; there is none before the first start.
func load(name string) (*state, error) {
	loaded := newState()
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return loaded, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, loaded); err != nil {
		return nil, fmt.Errorf("%s is no state of the Proxmox simulator: %w; remove it to begin with no VMs", name, err)
	}
	// VMs of a state that was written before they had UUIDs. Whatever reads it makes the same ones.
	for id, g := range loaded.Guests {
		if g.Config[smbios] == "" {
			known(g.Config, fmt.Sprintf("00000000-0000-4000-8000-%012d", id))
		}
	}
	return loaded, nil
}

// save replaces the file in one step: whoever reads it, also after a power cut, sees the old state or the new one.
func (s *state) save(name string) error {
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(name, data, 0o600)
}
