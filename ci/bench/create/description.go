//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/cluster/config"
)

// size is a number of nodes.
type size struct{ controlPlanes, workers int }

func parseSize(text string) (size, error) {
	var s size
	if _, err := fmt.Sscanf(text, "%d+%d", &s.controlPlanes, &s.workers); err != nil {
		return s, fmt.Errorf("size %q: want control planes and workers, such as 3+2", text)
	}
	return s, nil
}

func (s size) String() string { return fmt.Sprintf("%d+%d", s.controlPlanes, s.workers) }

// Where larger clusters stand: around the addresses of the sandbox's services, which stay.
var (
	wideSubnet  = "192.168.0.0/16"
	firstNode   = netip.MustParseAddr("192.168.80.1")
	widePool    = "192.168.79.0/24"
	firstVM     = 1001
	nodeCPU     = 4
	nodeMemory  = 8192
	nodeDiskGiB = 40
)

// describe changes the description in a cluster's folder to so many nodes. It must be one that castle accepts.
func (s size) describe(folder string) error {
	name := filepath.Join(folder, config.File)
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var changed map[string]any
	if err := yaml.Unmarshal(data, &changed); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	before, err := config.Load(folder)
	if err != nil {
		return err
	}
	host := before.Nodes[0].Host
	var nodes []any
	address := firstNode
	for i := range s.controlPlanes + s.workers {
		role, label := config.RoleControlPlane, fmt.Sprintf("sandbox-cp-%d", i+1)
		if i >= s.controlPlanes {
			role, label = config.RoleWorker, fmt.Sprintf("sandbox-worker-%d", i+1-s.controlPlanes)
		}
		nodes = append(nodes, map[string]any{"name": label, "role": role, "address": address.String(), "vmID": firstVM + i, "host": host,
			"cores": nodeCPU, "memory": nodeMemory, "disks": []any{map[string]any{"size": nodeDiskGiB}}})
		address = address.Next()
	}
	changed["nodes"] = nodes
	changed["vmIDs"] = map[string]any{"first": firstVM, "last": firstVM + len(nodes) - 1}
	if network, ok := changed["network"].(map[string]any); ok {
		network["subnet"] = wideSubnet
	}
	changed["loadBalancer"] = map[string]any{"pool": []any{widePool}}
	if data, err = yaml.Marshal(changed); err != nil {
		return err
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return err
	}
	_, err = config.Load(folder)
	return err
}
