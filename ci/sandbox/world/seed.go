package world

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/sandbox/infisical"
)

// SeedFile stands beside the description of a sandbox's cluster.
const SeedFile = "world.yaml"

// Seed is what a world starts from that has no state yet. Its secrets open nothing outside the world.
type Seed struct {
	Proxmox struct {
		Nodes     []string   `yaml:"nodes"`
		Storages  []Storage  `yaml:"storages,omitempty"` // else those that Proxmox installs
		Templates []Template `yaml:"templates"`
		Foreign   []Template `yaml:"foreign"` // VMs of somebody else
		Tokens    []string   `yaml:"tokens"`  // "user@realm!name=secret"
	} `yaml:"proxmox"`
	// Machines are there already where castle makes none: each starts Talos from an ISO, and waits at its address.
	Machines  []Machine      `yaml:"machines,omitempty"`
	Infisical infisical.Seed `yaml:"infisical"`
	Git       struct {
		ReadToken  string `yaml:"readToken"`       // what Flux reads with
		Token      string `yaml:"token"`           // what publishing pushes with
		Repository string `yaml:"repository"`      // "tazlab-k8s"
		Empty      bool   `yaml:"empty,omitempty"` // it begins without a commit; else with the blog and what Flux needs to apply it
	} `yaml:"git"`
	Registry netip.AddrPort `yaml:"registry"` // of the OCI registry, which asks for no password
}

// Storage is a place for disks.
type Storage struct {
	ID     string `yaml:"id"`
	Type   string `yaml:"type"`   // of Proxmox, such as rbd
	Shared bool   `yaml:"shared"` // by all nodes
}

// Template is a VM that is there from the beginning.
type Template struct {
	ID   int    `yaml:"id"`
	Name string `yaml:"name"`
	Node string `yaml:"node"` // of Proxmox; the first one where it is left out
}

// Machine is one that is there from the beginning.
type Machine struct {
	ID      int        `yaml:"id"`
	Address netip.Addr `yaml:"address"`
}

func readSeed(folder string) (*Seed, error) {
	data, err := os.ReadFile(filepath.Join(folder, SeedFile))
	if err != nil {
		return nil, fmt.Errorf("a sandbox needs a %s beside its cluster.yaml: %w", SeedFile, err)
	}
	var seed Seed
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&seed); err != nil {
		return nil, fmt.Errorf("%s: %w", SeedFile, err)
	}
	return &seed, nil
}

// places are where the services of the world are, out of the description that the layers are given.
type places struct {
	proxmox, infisical, git netip.AddrPort
}

func placesOf(c *config.Cluster) (places, error) {
	var p places
	var errs [3]error
	if c.MakesMachines() {
		p.proxmox, errs[0] = place("proxmox.url", c.Proxmox.URL)
	}
	if c.Secrets.Infisical.Has() {
		p.infisical, errs[1] = place("secrets.infisical.url", c.Secrets.Infisical.URL)
	}
	p.git, errs[2] = place("gitops.url", c.GitOps.URL)
	return p, errors.Join(errs[:]...)
}

func place(field, raw string) (netip.AddrPort, error) {
	parsed, err := url.Parse(raw)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s: %w", field, err)
	}
	address, err := netip.ParseAddr(parsed.Hostname())
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s: a sandbox's services have addresses, not names: %w", field, err)
	}
	port := uint16(80)
	if parsed.Scheme == "https" {
		port = 443
	}
	if parsed.Port() != "" {
		if _, err := fmt.Sscanf(parsed.Port(), "%d", &port); err != nil {
			return netip.AddrPort{}, fmt.Errorf("%s: %w", field, err)
		}
	}
	return netip.AddrPortFrom(address, port), nil
}
