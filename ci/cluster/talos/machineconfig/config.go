// Package machineconfig makes what a cluster's machines and clients are given: its secrets, each machine's configuration, and
// administrators' certificates. It asks no machine and writes nothing to a disk.
package machineconfig

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
	talosconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
	"github.com/siderolabs/talos/pkg/machinery/role"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
)

// ofNode begins the error of one node's configuration.
const ofNode = "machine configuration of "

const (
	kubernetesPort = 6443
	installDisk    = "/dev/sda" // a VM's first disk on virtio-scsi

	// link is an alias: what the kernel calls the one network card depends on its PCI slot.
	link     = "net0"
	linkRule = `link.driver == "virtio_net"`
	// Talos gives an alias to physical cards alone (internal/app/machined/pkg/controllers/network/link_alias_config.go of Talos 1.13), and
	// each of these is of no kind: the rule is met by the only card of a machine.
	onlyCardRule = `link.kind == ""`
)

// Configs makes the machine configuration of every node, by the node's name, and a talosconfig for a person, with all
// control planes as endpoints and a client certificate of one year. The same description and bundle give the same machine
// configurations, byte for byte. All mistakes are in the error at once.
func Configs(c *clusterconfig.Cluster, bundle *Bundle) (map[string]talosconfig.Provider, *clientconfig.Config, error) {
	configs, input, err := machineConfigs(c, bundle)
	if err != nil {
		return nil, nil, err
	}
	client, err := input.Talosconfig()
	if err != nil {
		return nil, nil, fmt.Errorf("talosconfig of %s: %w", c.Name, err)
	}
	return configs, client, nil
}

func machineConfigs(c *clusterconfig.Cluster, bundle *Bundle) (map[string]talosconfig.Provider, *generate.Input, error) {
	contract, err := contract(c)
	if err != nil {
		return nil, nil, err
	}
	if err := supported(c); err != nil {
		return nil, nil, err
	}
	vip := c.Endpoint.String()
	var cni []generate.Option // flannel
	if c.Kubernetes.CNI == clusterconfig.CNINone {
		cni = append(cni, generate.WithClusterCNIConfig(&v1alpha1.CNIConfig{CNIName: constants.NoneCNI}))
	}
	input, err := generate.NewInput(c.Name, endpoint(c), strings.TrimPrefix(c.Kubernetes.Version, "v"), append(cni,
		generate.WithVersionContract(contract),
		generate.WithSecretsBundle(bundle),
		generate.WithInstallDisk(installDisk), // see disks.go for nodes with several
		generate.WithInstallImage(InstallerImage(c)),
		generate.WithAdditionalSubjectAltNames([]string{vip}), // the VIP moves, so each machine's certificate must hold it
		generate.WithAllowSchedulingOnControlPlanes(len(c.Workers()) == 0),
		generate.WithEndpointList(addresses(controlPlanes(c))),
		generate.WithRoles(role.MakeSet(role.Admin)),
	)...)
	if err != nil {
		return nil, nil, fmt.Errorf("machine configuration of %s: %w", c.Name, err)
	}
	input.PodNet = []string{c.Kubernetes.PodSubnet.String()}
	input.ServiceNet = []string{c.Kubernetes.ServiceSubnet.String()}

	configs := make(map[string]talosconfig.Provider, len(c.Nodes))
	var mistakes []error
	for _, node := range c.Nodes {
		provider, err := machineConfig(c, node, input)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf(ofNode+"%s: %w", node.Name, err))
			continue
		}
		configs[node.Name] = provider
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, nil, err
	}
	return configs, input, nil
}

// InstallerImage is the image factory's installer for virtual machines with a cloud-init drive, holding the extensions of
// the cluster's schematic.
func InstallerImage(c *clusterconfig.Cluster) string {
	platform := "nocloud"
	if !c.MakesMachines() {
		platform = "metal"
	}
	return "factory.talos.dev/" + platform + "-installer/" + c.Talos.Schematic + ":" + c.Talos.Version
}

func machineConfig(c *clusterconfig.Cluster, node clusterconfig.Node, input *generate.Input) (talosconfig.Provider, error) {
	kind := machinetype.TypeWorker
	if node.Role == clusterconfig.RoleControlPlane {
		kind = machinetype.TypeControlPlane
	}
	generated, err := input.Config(kind)
	if err != nil {
		return nil, err
	}
	patched, err := generated.PatchV1Alpha1(func(v1 *v1alpha1.Config) error {
		own(c, node, v1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	documents := slices.DeleteFunc(slices.Clone(patched.Documents()), func(document config.Document) bool {
		return document.Kind() == network.HostnameKind // the generated one asks for a name made up by the machine
	})
	extra, err := ownDocuments(c, node)
	if err != nil {
		return nil, err
	}
	provider, err := container.New(append(documents, extra...)...)
	if err != nil {
		return nil, err
	}
	if _, err := provider.Validate(virtualMachine{}); err != nil {
		return nil, err
	}
	return withPatches(c, node, provider)
}

// own sets what the generator has no option for.
func own(c *clusterconfig.Cluster, node clusterconfig.Node, v1 *v1alpha1.Config) {
	switch {
	case node.InstallDisk != "":
		v1.MachineConfig.MachineInstall.InstallDisk = node.InstallDisk
	case len(node.Disks) > 1:
		v1.MachineConfig.MachineInstall.InstallDisk = disk(0)
	}
	// The VIP is an address of the subnet as well, on the control plane that holds it; nothing may settle on it.
	subnets := []string{c.Network.Subnet.String(), "!" + netip.PrefixFrom(c.Endpoint, c.Endpoint.BitLen()).String()}
	v1.MachineConfig.MachineKubelet.KubeletNodeIP = &v1alpha1.KubeletNodeIPConfig{KubeletNodeIPValidSubnets: subnets}
	if v1.ClusterConfig.EtcdConfig != nil {
		v1.ClusterConfig.EtcdConfig.EtcdAdvertisedSubnets = subnets
	}
	folders := []string{clusterconfig.LonghornFolder} // without storage, too, which a cluster can get later
	if path := c.Storage.DataPath; path != "" && path != clusterconfig.LonghornFolder {
		folders = append(folders, path)
	}
	for _, folder := range folders {
		v1.MachineConfig.MachineKubelet.KubeletExtraMounts = append(v1.MachineConfig.MachineKubelet.KubeletExtraMounts, v1alpha1.ExtraMount{
			Destination: folder, Source: folder, Type: "bind", Options: []string{"bind", "rshared", "rw"},
		})
	}
	if node.Role == clusterconfig.RoleControlPlane {
		for _, manifest := range c.Kubernetes.CNIManifests {
			v1.ClusterConfig.ClusterInlineManifests = append(v1.ClusterConfig.ClusterInlineManifests,
				v1alpha1.ClusterInlineManifest{InlineManifestName: manifest.Name, InlineManifestContents: manifest.Text()})
		}
	}
	if len(c.Workers()) == 0 {
		// Of nodes with this label MetalLB announces no address, and here there are no others.
		delete(v1.MachineConfig.MachineNodeLabels, constants.LabelExcludeFromExternalLB)
	}
	if len(c.Talos.KernelModules) > 0 {
		kernel := &v1alpha1.KernelConfig{}
		for _, module := range c.Talos.KernelModules {
			kernel.KernelModules = append(kernel.KernelModules, &v1alpha1.KernelModuleConfig{ModuleName: module})
		}
		v1.MachineConfig.MachineKernel = kernel
	}
}

// ownDocuments are the settings that have a document of their own.
func ownDocuments(c *clusterconfig.Cluster, node clusterconfig.Node) ([]config.Document, error) {
	hostname := network.NewHostnameConfigV1Alpha1()
	hostname.ConfigHostname = node.Name
	off := nethelpers.AutoHostnameKindOff
	hostname.ConfigAuto = &off

	rule, err := cel.ParseBooleanExpression(cardRule(c, node), celenv.LinkLocator())
	if err != nil {
		return nil, fmt.Errorf("rule for the network card: %w", err)
	}
	alias := network.NewLinkAliasConfigV1Alpha1(link)
	alias.Selector.Match = rule

	card := network.NewLinkConfigV1Alpha1(link)
	card.LinkAddresses = []network.AddressConfig{{AddressAddress: netip.PrefixFrom(node.Address, c.Network.Subnet.Bits())}}
	card.LinkRoutes = []network.RouteConfig{{RouteGateway: network.Addr{Addr: c.Network.Gateway}}}

	resolver := network.NewResolverConfigV1Alpha1()
	for _, server := range c.Network.DNS {
		resolver.ResolverNameservers = append(resolver.ResolverNameservers, network.NameserverConfig{Address: network.Addr{Addr: server}})
	}
	documents := []config.Document{hostname, alias, card, resolver}

	if node.Role == clusterconfig.RoleControlPlane {
		vip := network.NewLayer2VIPConfigV1Alpha1(c.Endpoint.String())
		vip.LinkName = link
		documents = append(documents, vip)
	}
	mirrors, err := mirrors(c)
	if err != nil {
		return nil, err
	}
	volumes, err := volumes(c, node)
	return slices.Concat(documents, mirrors, volumes), err
}

// cardRule tells the network card that has the node's address from the machine's others.
func cardRule(c *clusterconfig.Cluster, node clusterconfig.Node) string {
	switch {
	case node.MAC != "":
		return fmt.Sprintf(`mac(link.hardware_addr) == %q`, strings.ToLower(node.MAC))
	case !c.MakesMachines():
		return onlyCardRule
	}
	return linkRule
}

// supported tells whether the two versions go together.
func supported(c *clusterconfig.Cluster) error {
	host, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: c.Talos.Version})
	if err != nil {
		return fmt.Errorf("talos version %q: write it as v1.13.9", c.Talos.Version)
	}
	wanted, err := compatibility.ParseKubernetesVersion(strings.TrimPrefix(c.Kubernetes.Version, "v"))
	if err != nil {
		return fmt.Errorf("kubernetes version %q: write it as v1.36.2", c.Kubernetes.Version)
	}
	if err := wanted.SupportedWith(host); err != nil {
		return fmt.Errorf("kubernetes %s with talos %s: %w", c.Kubernetes.Version, c.Talos.Version, err)
	}
	return nil
}

// virtualMachine is the mode that machinery's validation judges by: a disk to install to, and no container.
type virtualMachine struct{}

func (virtualMachine) String() string        { return "cloud" }
func (virtualMachine) RequiresInstall() bool { return true }
func (virtualMachine) InContainer() bool     { return false }

func endpoint(c *clusterconfig.Cluster) string {
	return "https://" + netip.AddrPortFrom(c.Endpoint, kubernetesPort).String()
}

func controlPlanes(c *clusterconfig.Cluster) []clusterconfig.Node {
	var nodes []clusterconfig.Node
	for _, node := range c.Nodes {
		if node.Role == clusterconfig.RoleControlPlane {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func addresses(nodes []clusterconfig.Node) []string {
	var texts []string
	for _, node := range nodes {
		texts = append(texts, node.Address.String())
	}
	return texts
}
