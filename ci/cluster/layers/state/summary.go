package state

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Summary is what may be told of a layer's state: no attribute's value but the id, and no output's.
type Summary struct {
	Serial    uint64     `json:"serial"`
	Lineage   string     `json:"lineage"`
	Tofu      string     `json:"tofu"` // the version of OpenTofu that wrote it
	Resources []Resource `json:"resources"`
	Outputs   []string   `json:"outputs"` // names, sorted
}

// Resource is one that OpenTofu manages.
type Resource struct {
	Address  string `json:"address"` // module.x.type.name[key]
	ID       string `json:"id,omitempty"`
	Provider string `json:"provider"`         // such as bpg/proxmox
	Status   string `json:"status,omitempty"` // "tainted" where its making failed half-way
}

// Summary looks into the state of a layer; it is nil where there is none.
func (s Store) Summary(ctx context.Context, layer string) (*Summary, error) {
	held, err := s.pull(ctx, layer)
	if held == nil {
		return nil, err
	}
	return held.summary(), nil
}

func (c *contents) summary() *Summary {
	s := &Summary{Serial: c.Serial, Lineage: c.Lineage, Tofu: c.Version, Resources: []Resource{}, Outputs: slices.Sorted(maps.Keys(c.Outputs))}
	for _, resource := range c.Resources {
		if resource.Mode != "managed" {
			continue
		}
		address := resource.Type + "." + resource.Name
		if resource.Module != "" {
			address = resource.Module + "." + address
		}
		for _, instance := range resource.Instances {
			one := Resource{Address: address, Provider: shortProvider(resource.Provider), Status: instance.Status, ID: idOf(instance.Attributes)}
			if instance.Key != nil {
				one.Address = fmt.Sprintf("%s[%#v]", address, instance.Key)
			}
			s.Resources = append(s.Resources, one)
		}
	}
	return s
}

// shortProvider is "bpg/proxmox" of `provider["registry.opentofu.org/bpg/proxmox"].alias`.
func shortProvider(text string) string {
	_, address, _ := strings.Cut(text, `["`)
	address, _, _ = strings.Cut(address, `"]`)
	if _, short, ok := strings.Cut(address, "/"); ok {
		return short
	}
	return text
}

func idOf(attributes json.RawMessage) string {
	var known struct {
		ID any `json:"id"`
	}
	if json.Unmarshal(attributes, &known) != nil || known.ID == nil {
		return ""
	}
	return fmt.Sprint(known.ID)
}
