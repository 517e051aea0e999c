// Package hypervisor is all that castle itself asks of Proxmox: which machines of a cluster there are, and the removal of those
// that an interrupted run left unfinished. What it describes is made and removed by OpenTofu.
package hypervisor

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/base/bounded"
	"tazlab.net/castle/ci/base/plainhttp"
	"tazlab.net/castle/ci/cluster/config"
)

// VM is a VM of Proxmox within the cluster's range of ids.
type VM struct {
	ID     int
	Name   string
	Host   string
	Status string // "running", "stopped"
	Ours   bool   // it carries the cluster's tag

	Template bool
}

// Hypervisor is the Proxmox of a cluster.
type Hypervisor struct {
	cluster *config.Cluster
	client  *proxmox.Client
	close   func()
}

// longestAnswer is what is read of one answer, in bytes: a thousand machines with all that Proxmox tells of them are not half of it.
const longestAnswer = 16 << 20

// Open makes a client; nothing is asked yet. roots are whose signature on Proxmox's certificate counts, nil for the system's, where the
// description names no fingerprint; token is an API token, "user@realm!name=uuid".
func Open(cluster *config.Cluster, roots *x509.CertPool, token string) *Hypervisor {
	id, secret, _ := strings.Cut(token, "=")
	transport := transport(cluster, roots)
	web := &http.Client{
		Transport: bounded.Transport{Next: transport, Limit: longestAnswer}, Timeout: 30 * time.Second,
		CheckRedirect: plainhttp.SameServer,
	}
	client := proxmox.NewClient(strings.TrimSuffix(cluster.Proxmox.URL, "/")+"/api2/json",
		proxmox.WithHTTPClient(web), proxmox.WithAPIToken(id, secret))
	return &Hypervisor{cluster: cluster, client: client, close: transport.CloseIdleConnections}
}

// Close gives its connections back.
func (h *Hypervisor) Close() { h.close() }

// VMs lists the VMs in the cluster's range, in order of their ids.
func (h *Hypervisor) VMs(ctx context.Context) ([]VM, error) {
	return h.list(ctx, h.cluster.VMIDs.Contains)
}

// list lists the VMs whose ids are wanted, in order of their ids. Proxmox leaves out, silently, what the token may not see: that
// is an error here, since a list without a VM would else say that there is none.
func (h *Hypervisor) list(ctx context.Context, wanted func(id int) bool) ([]VM, error) {
	cluster, err := h.client.Cluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask Proxmox at %s: %w", h.cluster.Proxmox.URL, err)
	}
	resources, err := cluster.Resources(ctx, "vm")
	if err != nil {
		return nil, fmt.Errorf("ask Proxmox at %s for its VMs: %w", h.cluster.Proxmox.URL, err)
	}
	var vms []VM
	sighted, templates := false, h.cluster.TemplateIDs()
	for _, resource := range resources {
		id := int(resource.VMID)
		sighted = sighted || slices.Contains(templates, id)
		if !wanted(id) {
			continue
		}
		tags := strings.FieldsFunc(resource.Tags, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
		vms = append(vms, VM{ID: id, Name: resource.Name, Host: resource.Node, Status: resource.Status,
			Ours: h.cluster.Owns(tags), Template: resource.Template != 0})
	}
	if !sighted { // the template is gone, or not to be seen
		if err := h.maySee(ctx); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(vms, func(a, b VM) int { return a.ID - b.ID })
	return vms, nil
}

// maySee fails where the token has no right to see VMs.
func (h *Hypervisor) maySee(ctx context.Context) error {
	const path, privilege = "/vms", "VM.Audit"
	permissions, err := h.client.Permissions(ctx, &proxmox.PermissionsOptions{Path: path})
	if err != nil {
		return fmt.Errorf("ask Proxmox at %s what the token may do: %w", h.cluster.Proxmox.URL, err)
	}
	if !permissions[path][privilege] {
		return fmt.Errorf("the token of Proxmox at %s sees neither a template of the cluster's nor any VM that it would have to: give it %s on %s", h.cluster.Proxmox.URL, privilege, path)
	}
	return nil
}

// machine opens a VM for acting on it.
func (h *Hypervisor) machine(ctx context.Context, vm VM) (*proxmox.VirtualMachine, error) {
	host, err := h.client.Node(ctx, vm.Host)
	if err != nil {
		return nil, err
	}
	return host.VirtualMachine(ctx, vm.ID)
}
