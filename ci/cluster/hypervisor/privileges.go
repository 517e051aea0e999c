package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/luthermonson/go-proxmox"
	"golang.org/x/sync/errgroup"

	"tazlab.net/castle/ci/cluster/config"
)

// needed are the privileges that castle and OpenTofu's provider use, by what they are used on. The README gives them to a role.
//
// Source: qemu-server 9.2 (src/PVE/API2/Qemu.pm: the permissions of each call, check_vm_modify_config_perm and check_drive_perms),
// pve-storage 9.1 (src/PVE/API2/Storage/Status.pm), pve-manager 9.2 (PVE/API2/Cluster.pm and Nodes.pm). They are the same in qemu-server
// 8.3.13 and pve-manager 8.4.1, which are those of Proxmox VE 8.4.
//
// Those that are to spare were seen not to be asked for by the layer's apply, a second one and its destroy (bpg/proxmox v0.106.0 against
// ci/sandbox/proxmox); each of the others was. They are for what is rare: another kind of machine, tasks of others that hold a VM.
var needed = []struct {
	privileges []string
	what       string
	spare      bool
	paths      func(*config.Cluster) []string
}{
	{[]string{"VM.Allocate", "VM.Audit", "VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Cloudinit", "VM.Config.Disk", "VM.Config.Memory",
		"VM.Config.Network", "VM.Config.Options", "VM.PowerMgmt"}, onNodes, false, nodePaths},
	{[]string{"VM.Config.HWType"}, onNodes, true, nodePaths},
	{[]string{"VM.Audit", "VM.Clone"}, "the template", false, func(c *config.Cluster) []string {
		var paths []string
		for _, id := range c.TemplateIDs() {
			paths = append(paths, fmt.Sprintf("/vms/%d", id))
		}
		return paths
	}},
	{[]string{"Datastore.AllocateSpace"}, "the VMs' disks", false, storagePath},
	{[]string{"Datastore.Audit"}, "the VMs' disks", true, storagePath},
	{[]string{useBridge}, "the VMs' bridge", false, func(c *config.Cluster) []string {
		// The clone has the template's bridge, untagged, before it gets its own.
		paths := []string{localBridges + c.Proxmox.Bridge}
		if c.Proxmox.VLAN != 0 {
			paths = append(paths, fmt.Sprintf("%s%s/%d", localBridges, c.Proxmox.Bridge, c.Proxmox.VLAN))
		}
		return paths
	}},
	{[]string{"Sys.Audit"}, "hosts and tasks", true, func(c *config.Cluster) []string {
		paths := []string{"/"}
		for _, host := range hosts(c) {
			paths = append(paths, "/nodes/"+host)
		}
		return paths
	}},
}

const (
	onNodes      = "the nodes' VMs"
	useBridge    = "SDN.Use"
	localBridges = "/sdn/zones/localnetwork/"
)

// Privileges are all that the token needs somewhere, sorted: what a role holds that is given on /.
func Privileges() []string {
	all := map[string]bool{}
	for _, need := range needed {
		for _, privilege := range need.privileges {
			all[privilege] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func storagePath(c *config.Cluster) []string { return []string{"/storage/" + c.Proxmox.Storage} }

func nodePaths(c *config.Cluster) []string {
	var paths []string
	for _, node := range c.Nodes {
		paths = append(paths, fmt.Sprintf("/vms/%d", node.VMID))
	}
	return paths
}

// hosts are those that nodes stand on, each once.
func hosts(c *config.Cluster) []string {
	var names []string
	for _, node := range c.Nodes {
		names = append(names, node.Host)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Lack is a privilege that the token has not where it needs it.
type Lack struct {
	Privilege string
	What      string // what it is needed for
	Spare     bool   // create does without it
	Paths     []string
}

func (l Lack) String() string {
	return fmt.Sprintf("%s on %s (%s)", l.Privilege, strings.Join(l.Paths, ", "), l.What)
}

// asksAtOnce is how many questions about paths Proxmox gets at the same time: its API has three processes (pveproxy).
const asksAtOnce = 6

// Lacking are the privileges that the token has not, as Proxmox itself would judge; all is true where it has none of all that it needs.
func (h *Hypervisor) Lacking(ctx context.Context) (lacks []Lack, all bool, err error) {
	held, err := h.held(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("ask Proxmox at %s what the token may do: %w", h.cluster.Proxmox.URL, err)
	}
	all = true
	for _, need := range needed {
		for _, privilege := range need.privileges {
			lack := Lack{Privilege: privilege, What: need.what, Spare: need.spare}
			for _, path := range need.paths(h.cluster) {
				// A value of 0 says that the privilege is held there and not below.
				if _, has := held[path][privilege]; !has {
					lack.Paths = append(lack.Paths, path)
				}
			}
			all = all && len(lack.Paths) == len(need.paths(h.cluster))
			if len(lack.Paths) > 0 {
				lacks = append(lacks, lack)
			}
		}
	}
	if h.bridgeIsVnet(ctx, lacks) {
		lacks = slices.DeleteFunc(lacks, func(lack Lack) bool { return lack.Privilege == useBridge })
	}
	return lacks, all, nil
}

// removal are the privileges that it takes to stop a VM and to remove it with its disks.
var removal = []string{"VM.Allocate", "VM.Audit", "VM.PowerMgmt"}

// MayRemove fails where the token must not remove the nodes' VMs, and names what it lacks for that.
func (h *Hypervisor) MayRemove(ctx context.Context) error {
	lacks, _, err := h.Lacking(ctx)
	if err != nil {
		return err
	}
	var missing []string
	for _, lack := range lacks {
		if slices.Contains(removal, lack.Privilege) && lack.What == onNodes {
			missing = append(missing, lack.String())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("nothing was removed: the Proxmox token must not remove the VMs, since it lacks %s; doctor says what to type", strings.Join(missing, ", "))
	}
	return nil
}

// held are the token's privileges on all paths that are needed. Proxmox works out what a path inherits.
func (h *Hypervisor) held(ctx context.Context) (proxmox.Permissions, error) {
	var paths []string
	for _, need := range needed {
		paths = append(paths, need.paths(h.cluster)...)
	}
	answers := make([]proxmox.Permissions, len(paths))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(asksAtOnce)
	for i, path := range paths {
		group.Go(func() (err error) {
			answers[i], err = h.client.Permissions(ctx, &proxmox.PermissionsOptions{Path: path})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	held := proxmox.Permissions{}
	for _, answer := range answers {
		maps.Copy(held, answer)
	}
	return held, nil
}

// bridgeIsVnet tells that the bridge is a VNet that the token sees, and which is therefore in another zone than that of the hosts' own
// bridges: Proxmox asks for the privilege there (pve-guest-common, PVE::GuestHelpers::check_vnet_access) and lists no VNet that the
// token may not see.
func (h *Hypervisor) bridgeIsVnet(ctx context.Context, lacks []Lack) bool {
	if !slices.ContainsFunc(lacks, func(lack Lack) bool { return lack.Privilege == useBridge }) {
		return false
	}
	for _, host := range hosts(h.cluster) {
		networks, err := new(proxmox.Node).New(h.client, host).Networks(ctx, "any_bridge")
		if err != nil {
			continue
		}
		for _, network := range networks {
			if network.Iface == h.cluster.Proxmox.Bridge && network.Type == "vnet" {
				return true
			}
		}
	}
	return false
}

// Refused tells that Proxmox does not know the token, or did not let it do what was asked.
func Refused(err error) bool { return errors.Is(err, proxmox.ErrNotAuthorized) }
