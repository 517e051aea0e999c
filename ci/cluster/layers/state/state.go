// Package state defines where OpenTofu keeps the layers' states, for the units that write them, and reads what is in them. It
// never writes one.
package state

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state/objects"
)

// Store holds a cluster's states.
type Store struct {
	Cluster     *config.Cluster
	Folder      string          // for local states
	Tofu        string          // OpenTofu's name or path
	Environment []string        // OpenTofu's, with what decrypts the states and opens the store
	Bucket      *objects.Bucket // nil where the states are in the folder
}

// Resources are the addresses of what a layer's state holds, without data sources; nil where there is no state.
func (s Store) Resources(ctx context.Context, layer string) ([]string, error) {
	held, err := s.pull(ctx, layer)
	if held == nil {
		return nil, err
	}
	return held.addresses(), nil
}

// VMs are the machines that the state of the layer platform holds, by the nodes' names; nil where there is no state.
func (s Store) VMs(ctx context.Context) (VMs, error) {
	held, err := s.pull(ctx, layers.Platform)
	if held == nil {
		return nil, err
	}
	return held.vms()
}

// pull reads the state of a layer; it is nil where there is none.
func (s Store) pull(ctx context.Context, layer string) (*contents, error) {
	folder, done, err := s.open(layer)
	if err != nil || folder == "" {
		return nil, err
	}
	defer done()
	tofu, err := s.tofu(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("open the state of layer %s: %w", layer, err)
	}
	text, err := tofu.StatePull(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the state of layer %s: %w", layer, err)
	}
	return parse(text)
}

// tofu is OpenTofu in a folder that open has given.
func (s Store) tofu(ctx context.Context, folder string) (*tfexec.Terraform, error) {
	tofu, err := tfexec.NewTerraform(folder, s.Tofu)
	if err != nil {
		return nil, err
	}
	if err := tofu.SetEnv(forTerraformExec(s.Environment)); err != nil {
		return nil, err
	}
	if s.Cluster.State.Backend != config.StateLocal {
		if err := tofu.Init(ctx); err != nil {
			return nil, err
		}
	}
	return tofu, nil
}

// open gives a folder in which OpenTofu finds a layer's state: the state's own, or for a remote one a new folder that names
// the backend. It is "" where a local state is not there.
func (s Store) open(layer string) (folder string, done func(), err error) {
	backend := backend(s.Cluster, s.Folder, layer)
	if backend.Name == config.StateLocal {
		folder := filepath.Join(s.Folder, layer)
		if _, err := os.Stat(filepath.Join(folder, file)); errors.Is(err, fs.ErrNotExist) {
			return "", nil, nil
		} else if err != nil {
			return "", nil, err
		}
		return folder, func() {}, nil
	}
	data, err := json.Marshal(map[string]any{"terraform": map[string]any{"backend": map[string]any{backend.Name: backend.Config}}})
	if err != nil {
		return "", nil, err
	}
	if folder, err = os.MkdirTemp("", "state-"); err != nil {
		return "", nil, err
	}
	done = func() { _ = os.RemoveAll(folder) }
	if err := os.WriteFile(filepath.Join(folder, "backend.tf.json"), data, 0o600); err != nil {
		done()
		return "", nil, err
	}
	return folder, done, nil
}

// forTerraformExec leaves out the variables that the library sets itself and refuses to be given.
func forTerraformExec(environment []string) map[string]string {
	kept := map[string]string{}
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "TF_VAR_") {
			kept[name] = value
		}
	}
	return tfexec.CleanEnv(kept)
}

// contents is what is read here of a state.
type contents struct {
	header
	Version   string                     `json:"terraform_version"` // OpenTofu's
	Outputs   map[string]json.RawMessage `json:"outputs"`
	Resources []struct {
		Module    string `json:"module"`
		Mode      string `json:"mode"`
		Type      string `json:"type"`
		Name      string `json:"name"`
		Provider  string `json:"provider"`
		Instances []struct {
			Key        any             `json:"index_key"`
			Status     string          `json:"status"`
			Attributes json.RawMessage `json:"attributes"`
		} `json:"instances"`
	} `json:"resources"`
}

func parse(text string) (*contents, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	held := &contents{}
	if err := json.Unmarshal([]byte(text), held); err != nil {
		return nil, fmt.Errorf("a state that is no JSON: %w", err)
	}
	return held, nil
}

// addresses lists the managed resources, "module.x.type.name[key]".
func (c *contents) addresses() []string {
	list := []string{}
	for _, resource := range c.summary().Resources {
		list = append(list, resource.Address)
	}
	return list
}

// VMType is a VM's type in the module of the layer platform; RecordType is that of a record of a machine that castle does not make.
const (
	VMType     = "proxmox_virtual_environment_vm"
	RecordType = "terraform_data"
)

// resourceName is what both are called by in the modules.
const resourceName = "node"

// MachineType is what a cluster's machines are in the state.
func MachineType(c *config.Cluster) string {
	if c.MakesMachines() {
		return VMType
	}
	return RecordType
}

// IsMachine tells whether a resource of the layer platform is a machine.
func IsMachine(typ, name string) bool {
	return typ == VMType || typ == RecordType && name == resourceName
}

// VMs are the machines of a state by the nodes' names.
type VMs map[string]VM

// VM is one of them.
type VM struct {
	ID      int        // 0 of a machine that castle does not make
	Host    string     // of Proxmox
	Role    string     // of the node, as its tags have it
	Address netip.Addr // the node's; the zero one where the making of the VM failed before it had one
	Tainted bool       // its making failed half-way; OpenTofu is going to replace it
	// TakesUnreferenced says that OpenTofu removes with it also volumes that its configuration does not name.
	TakesUnreferenced bool
}

// IDs are the VMs' ids by the nodes' names.
func (v VMs) IDs() map[string]int {
	ids := map[string]int{}
	for node, vm := range v {
		ids[node] = vm.ID
	}
	return ids
}

// attributes are those of a VM that are read here.
type attributes struct {
	ID             int      `json:"vm_id"`
	Host           string   `json:"node_name"`
	Tags           []string `json:"tags"`
	Unreferenced   bool     `json:"delete_unreferenced_disks_on_destroy"`
	Initialization []struct {
		IPConfig []struct {
			IPv4 []struct {
				Address string `json:"address"` // with the length of the subnet's prefix
			} `json:"ipv4"`
		} `json:"ip_config"`
	} `json:"initialization"`
}

// record is what terragrunt/modules/platform-talos keeps of a machine; a value of any type stands beside its type in a state.
type record struct {
	Input struct {
		Value struct {
			Role    string     `json:"role"`
			Address netip.Addr `json:"address"`
		} `json:"value"`
	} `json:"input"`
}

// address is the static one that the cloud-init drive gives, if there is one.
func (a attributes) address() netip.Addr {
	for _, drive := range a.Initialization {
		for _, card := range drive.IPConfig {
			for _, ip := range card.IPv4 {
				if prefix, err := netip.ParsePrefix(ip.Address); err == nil {
					return prefix.Addr()
				}
			}
		}
	}
	return netip.Addr{}
}

func (c *contents) vms() (VMs, error) {
	vms := VMs{}
	for _, resource := range c.Resources {
		if !IsMachine(resource.Type, resource.Name) {
			continue
		}
		for _, instance := range resource.Instances {
			if resource.Type == RecordType {
				var held record
				if err := json.Unmarshal(instance.Attributes, &held); err != nil || !held.Input.Value.Address.IsValid() {
					return nil, fmt.Errorf("the state of layer %s does not say where %v is: %w", layers.Platform, instance.Key, cmp.Or(err, errors.New("no address")))
				}
				vms[fmt.Sprint(instance.Key)] = VM{Role: held.Input.Value.Role, Address: held.Input.Value.Address}
				continue
			}
			var attributes attributes
			if err := json.Unmarshal(instance.Attributes, &attributes); err != nil || attributes.ID == 0 {
				return nil, fmt.Errorf("the state of layer %s does not say which VM %v is: %w", layers.Platform, instance.Key, cmp.Or(err, errors.New("no vm_id")))
			}
			vm := VM{ID: attributes.ID, Host: attributes.Host, Role: config.RoleWorker, Address: attributes.address(),
				Tainted: instance.Status == "tainted", TakesUnreferenced: attributes.Unreferenced}
			if slices.Contains(attributes.Tags, config.RoleControlPlane) {
				vm.Role = config.RoleControlPlane
			}
			vms[fmt.Sprint(instance.Key)] = vm
		}
	}
	return vms, nil
}
