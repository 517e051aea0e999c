package lifecycle

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/cluster/secrets"
)

// vm is a VM of Proxmox within the cluster's range of ids.
type vm struct {
	ID     int
	Name   string
	Host   string
	Status string // "running", "stopped"
	Ours   bool   // it carries the cluster's tag
}

// proxmox is a client of the cluster's Proxmox, to be given back when done.
func (c *Cluster) proxmox(access *access) (client *proxmox.Client, done func()) {
	token, _ := access.values.Get(secrets.ProxmoxAPIToken)
	id, secret, _ := strings.Cut(token, "=")
	transport := http.DefaultTransport.(*http.Transport).Clone() // keeps the proxy of the environment
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: c.description.Proxmox.Insecure}
	client = proxmox.NewClient(strings.TrimSuffix(c.description.Proxmox.URL, "/")+"/api2/json",
		proxmox.WithHTTPClient(&http.Client{Transport: transport, Timeout: 30 * time.Second}), proxmox.WithAPIToken(id, secret))
	return client, transport.CloseIdleConnections
}

// vms lists the VMs in the cluster's range, in order of their ids.
func (c *Cluster) vms(ctx context.Context, access *access) ([]vm, error) {
	client, done := c.proxmox(access)
	defer done()
	cluster, err := client.Cluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask Proxmox at %s: %w", c.description.Proxmox.URL, err)
	}
	resources, err := cluster.Resources(ctx, "vm")
	if err != nil {
		return nil, fmt.Errorf("ask Proxmox at %s for its VMs: %w", c.description.Proxmox.URL, err)
	}
	var list []vm
	for _, resource := range resources {
		id := int(resource.VMID)
		if id < c.description.VMIDs.First || id > c.description.VMIDs.Last {
			continue
		}
		tags := strings.FieldsFunc(resource.Tags, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
		list = append(list, vm{ID: id, Name: resource.Name, Host: resource.Node, Status: resource.Status,
			Ours: slices.Contains(tags, c.description.Tag())})
	}
	slices.SortFunc(list, func(a, b vm) int { return a.ID - b.ID })
	return list, nil
}
