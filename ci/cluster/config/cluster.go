// Package config reads a cluster's description, terragrunt/live/NAME/cluster.yaml, and finds every mistake in it at once,
// each with its line and its fix. It never contacts what the description names.
//
// What a description can hold is said by the types of cluster.go, whose comments are what an editor shows, and by the table in
// facts.go. The JSON schema for editors, terragrunt/cluster.schema.json, is made from both by the package's tests. The types'
// JSON, with every default filled in, is what the layers' units, their hooks and `castle-cluster describe` go by; none of them
// reads cluster.yaml again.
//
// The checks stay beside the types, since Load gives no description that was not checked.
package config

import "net/netip"

// The schema is one of the golden files.
//go:generate go test . -update

// File is the description's name in a cluster's folder.
const File = "cluster.yaml"

// Platforms that a cluster can stand on.
const (
	PlatformProxmox = "proxmox"
	PlatformTalos   = "talos" // machines that are there already and run Talos: castle makes none
	PlatformAWS     = "aws"
	PlatformSandbox = "sandbox" // the proving ground: simulated Proxmox, Talos and Infisical, everything else real
)

// Roles of a node.
const (
	RoleControlPlane = "controlplane"
	RoleWorker       = "worker"
)

// What may bring the pods' network.
const (
	CNIFlannel = "flannel" // Talos does
	CNINone    = "none"    // manifests of the user's do
)

// What may encrypt the EPHEMERAL partition.
const (
	EncryptionNodeID = "nodeID" // a key derived from the VM's own id
	EncryptionNone   = "none"
)

// Where states may be kept.
const (
	StateLocal = "local" // a volume of the engine
	StateS3    = "s3"
)

// Cluster is the single source of truth of a cluster, terragrunt/live/NAME/cluster.yaml. Rules that span several fields are
// checked by castle-cluster validate.
type Cluster struct {
	// The cluster's name, a DNS label, the same as its folder's. castle, controlplane, worker and what begins with castle- are
	// reserved on Proxmox.
	Name string `json:"name"`
	// Where the cluster stands. talos is for machines that are there and run Talos already; sandbox is the proving ground; aws can be described
	// and not be created yet.
	Platform string `json:"platform"`
	// Virtual IP of the Kubernetes API, a free address of the subnet that one control plane holds at a time. On aws there is a load balancer.
	Endpoint netip.Addr `json:"endpoint,omitzero"`
	// The subnet of all nodes and of the virtual IP; on aws the VPC's.
	Network Network `json:"network"`
	// Where the virtual machines are made.
	Proxmox Proxmox `json:"proxmox,omitzero"`
	// Where the instances are made, on aws.
	AWS AWS `json:"aws,omitzero"`
	// Range of VM ids that belong to this cluster, both ends included: the only ones that a wipe may touch.
	VMIDs Range `json:"vmIDs,omitzero"`
	// Refuse to destroy or to wipe the cluster as long as this is true.
	DeletionProtection bool `json:"deletionProtection"`
	// The cluster's machines.
	Nodes []Node `json:"nodes"`
	// What the machine configuration is made from.
	Talos Talos `json:"talos"`
	// Version and internal networks of Kubernetes.
	Kubernetes Kubernetes `json:"kubernetes"`
	// What MetalLB hands out, or none where there is no MetalLB, as on aws.
	LoadBalancer LoadBalancer `json:"loadBalancer"`
	// Settings of Longhorn, or in the sandbox of the chart that stands in for it; or none where there is no Longhorn.
	Storage Storage `json:"storage"`
	// What Flux reconciles.
	GitOps GitOps `json:"gitops"`
	// Where secrets come from. No value stands here.
	Secrets Secrets `json:"secrets"`
	// Where OpenTofu's encrypted states are kept.
	State State `json:"state"`
}

// Network is the subnet that all nodes and the virtual IP stand in.
type Network struct {
	// The subnet without host bits, such as 192.168.1.0/24.
	Subnet netip.Prefix `json:"subnet"`
	// The subnet's gateway; on aws the VPC's own.
	Gateway netip.Addr `json:"gateway,omitzero"`
	// Name servers, at least one; on aws the VPC's own.
	DNS []netip.Addr `json:"dns,omitzero"`
}

// Proxmox is where the VMs are made. Every VM is a clone of the template, a Talos "nocloud" image, so that it takes
// its static address from its cloud-init drive.
type Proxmox struct {
	// Address of the API without a path, such as https://192.168.1.10:8006/.
	URL string `json:"url"`
	// File beside this description, in PEM, with the certificate of who signed Proxmox's own: /etc/pve/pve-root-ca.pem of its
	// nodes. Left out where the system knows who did.
	CA string `json:"ca,omitzero"`
	// SHA-256 fingerprint of Proxmox's certificate, instead of ca, as its web UI shows it: AA:BB:….
	Fingerprint string `json:"fingerprint,omitzero"`
	// Accept any certificate, of whoever answers, who then gets the API token. Write ca or fingerprint instead.
	Insecure bool `json:"insecure"`
	// VM id of the Talos template that is cloned, outside vmIDs; left out where templates has one for each host.
	Template int `json:"template,omitzero"`
	// Proxmox node that template stands on, where nodes on others are cloned from it, too: its disks and storage have to be shared then.
	TemplateHost string `json:"templateHost,omitzero"`
	// VM ids of templates by the Proxmox node that each stands on, for the nodes there.
	Templates map[string]int `json:"templates,omitzero"`
	// Have the nodes' first disks hold only what differs from the template's, instead of a copy: made in a second, and the template has to stay.
	// The template's disks have to be on storage then, of a type that can do that: not lvm.
	LinkedClones bool `json:"linkedClones,omitzero"`
	// Storage that cloned disks go to, such as local-lvm.
	Storage string `json:"storage"`
	// Bridge that the machines are connected to, such as vmbr0.
	Bridge string `json:"bridge"`
	// VLAN tag of the machines' network cards on the bridge, 1 to 4094; untagged where it is left out.
	VLAN int `json:"vlan,omitzero"`
}

// AWS is where the instances are made: a VPC of network.subnet, with a subnet in each zone.
type AWS struct {
	// Region, such as eu-central-1.
	Region string `json:"region"`
	// Subnets of the VPC by their availability zones; a node stands in the zone whose subnet has its address.
	Zones map[string]netip.Prefix `json:"zones"`
	// Where administrators come from, such as 203.0.113.7/32: nobody else reaches the APIs of Kubernetes and of Talos.
	AdminCIDRs []netip.Prefix `json:"adminCIDRs"`
	// Id of the Talos image that instances are made from. Left out it is Sidero Labs' own, which has no extensions.
	AMI string `json:"ami,omitzero"`
	// Architecture of the instances, amd64 or arm64.
	Architecture string `json:"architecture,omitzero"`
}

// Range is a range of VM ids, both ends included.
type Range struct {
	// First id.
	First int `json:"first"`
	// Last id.
	Last int `json:"last"`
}

// Node is one machine.
type Node struct {
	// Host name and name of the Kubernetes node, a DNS label, unique.
	Name string `json:"name"`
	// controlplane runs etcd and the API server, worker runs the workloads, which control planes take where there is no worker. etcd needs
	// an odd number of control planes.
	Role string `json:"role"`
	// Static address in the subnet. On talos the machine has to answer there already, in maintenance mode.
	Address netip.Addr `json:"address"`
	// Disk that Talos is installed to on talos, such as /dev/nvme0n1: all that is on it goes.
	InstallDisk string `json:"installDisk,omitzero"`
	// Hardware address of the network card that has the address, on talos, such as 52:54:00:12:34:56. It may be left out where the machine has one card.
	MAC string `json:"mac,omitzero"`
	// Fingerprint of the certificate that the machine shows in maintenance mode, on talos, as its console prints it. It
	// may be left out: then the configuration, with the cluster's keys, goes to whoever answers at the address.
	Fingerprint string `json:"fingerprint,omitzero"`
	// VM id in Proxmox, within vmIDs.
	VMID int `json:"vmID,omitzero"`
	// Proxmox node that it runs on.
	Host string `json:"host,omitzero"`
	// Cores; Talos needs at least 2 for a control plane, 1 for a worker.
	Cores int `json:"cores,omitzero"`
	// Memory in MiB; Talos needs at least 2048 for a control plane, 1024 for a worker.
	Memory int `json:"memory,omitzero"`
	// Type of the instance on aws, such as m7i.large, instead of cores and memory.
	InstanceType string `json:"instanceType,omitzero"`
	// Disks, at most 31, on aws 12; Talos is installed to the first one. On talos they are the machine's own.
	Disks []Disk `json:"disks,omitzero"`
	// Patches of its machine configuration, after those of talos.patches.
	Patches []Patch `json:"patches,omitzero"`
}

// Disk is one disk of a virtual machine that castle makes.
type Disk struct {
	// Size in GiB; Talos needs at least 10 on the first disk.
	Size int `json:"size"`
	// Name of the volume that Talos makes of a further disk, mounted at /var/mnt/NAME. Without it the disk is left as it is.
	Volume string `json:"volume,omitzero"`
}

// Talos is what the machine configuration is generated from.
type Talos struct {
	// Exact version, of a minor version that castle knows, such as v1.13.9.
	Version string `json:"version"`
	// Id of the image factory's schematic that holds the extensions.
	Schematic string `json:"schematic"`
	// System extensions, [] for none. Longhorn needs siderolabs/iscsi-tools and siderolabs/util-linux-tools.
	Extensions []string `json:"extensions"`
	// Kernel modules to load, only ones that this version of Talos or an extension ships.
	KernelModules []string `json:"kernelModules"`
	// Encryption of the system disk.
	DiskEncryption DiskEncryption `json:"diskEncryption"`
	// Mirrors of registries, asked in this order before the registry itself, by the host that names of images begin with, such as docker.io,
	// or "*" for all others. A path that begins with /v2/ is asked as it stands, such as a project's in Harbor.
	RegistryMirrors map[string][]string `json:"registryMirrors,omitzero"`
	// Strategic merge patches of the machine configuration: for all nodes, then for those of a role.
	Patches Patches `json:"patches,omitzero"`
}

// Patches are strategic merge patches of machine configurations, in the order in which they are applied.
type Patches struct {
	// For all nodes.
	All []Patch `json:"all,omitzero"`
	// For control planes.
	ControlPlane []Patch `json:"controlplane,omitzero"`
	// For workers.
	Worker []Patch `json:"worker,omitzero"`
}

// DiskEncryption says what encrypts the system disk's partitions.
type DiskEncryption struct {
	// Key of the EPHEMERAL partition and of the volumes of further disks: nodeID derives it from the machine's id, none leaves them in clear.
	Ephemeral string `json:"ephemeral"`
}

// Kubernetes is the version and the two internal networks.
type Kubernetes struct {
	// Exact version that this version of Talos supports, such as v1.36.2.
	Version string `json:"version"`
	// Addresses of pods; each node takes a /24.
	PodSubnet netip.Prefix `json:"podSubnet"`
	// Addresses of Services, a /12 or smaller.
	ServiceSubnet netip.Prefix `json:"serviceSubnet"`
	// What brings the pods' network: flannel is Talos's own, none leaves it to cniManifests.
	CNI string `json:"cni"`
	// Files beside this description with the manifests of another CNI, such as Cilium's, which Talos applies as soon as the API answers.
	CNIManifests []Manifest `json:"cniManifests,omitzero"`
}

// LoadBalancer is what MetalLB hands out.
type LoadBalancer struct {
	// Ranges of the subnet that nothing else uses, such as 192.168.1.220-192.168.1.239 or 192.168.1.224/28.
	Pool []string `json:"pool"`
}

// LonghornFolder is where Longhorn keeps its data unless it is told otherwise, and what the pods of its chart mount from the node in any case,
// sharing mounts in both directions (chart/templates/daemonset-sa.yaml of longhorn/longhorn).
const LonghornFolder = "/var/lib/longhorn"

// Storage configures Longhorn, or in the sandbox the chart that stands in for it.
type Storage struct {
	// Copies of each volume, at most as many as there are workers, or control planes where there is no worker.
	Replicas int `json:"replicas"`
	// Folder below /var on each node, such as /var/mnt/longhorn for the disks that are the volume longhorn.
	DataPath string `json:"dataPath"`
	// Name of the default StorageClass.
	StorageClass string `json:"storageClass"`
}

// GitOps is what Flux reconciles.
type GitOps struct {
	// HTTPS address of the Git repository, without credentials.
	URL string `json:"url"`
	// Branch that Flux follows.
	Branch string `json:"branch"`
	// Folder of this cluster in the repository, such as clusters/blue.
	Path string `json:"path"`
	// multi keeps what a namespace's Flux objects do within that namespace and the rights of its service accounts (Flux's multi-tenancy
	// lockdown). single lets whoever may create one of them do anything on the cluster, as flux bootstrap installs Flux.
	Tenancy string `json:"tenancy"`
}

// How much a namespace's Flux objects may do.
const (
	TenancyMulti  = "multi"
	TenancySingle = "single"
)

// Secrets names the sources; no value stands here.
type Secrets struct {
	// SOPS files beside this description, one or a list. With Infisical they hold what everything else is reached by, without it all
	// secrets, the cluster's PKI (TALOS_SECRETS) among them.
	SOPS []string `json:"sops"`
	// SOPS files that plan reads instead, one or a list. They hold identities that may only read, and are also encrypted to the key that
	// plans in CI, which then opens nothing else.
	Plan []string `json:"plan,omitempty"`
	// Infisical project with the cluster's other secrets, or none where the SOPS files hold them all.
	Infisical Infisical `json:"infisical"`
}

// ForPlanning has the secrets come from the files for planning, where there are any.
func (s *Secrets) ForPlanning() {
	if len(s.Plan) > 0 {
		s.SOPS = s.Plan
	}
}

// none stands in the place of what a cluster does without.
const none = "none"

// NoInfisical stands in the place of an Infisical project.
const NoInfisical = none

// Infisical is the project that holds the cluster's secrets.
type Infisical struct {
	// Address of Infisical, such as https://eu.infisical.com.
	URL string `json:"url"`
	// The project's id.
	Project string `json:"project"`
	// The project's slug, which External Secrets Operator asks by.
	Slug string `json:"slug"`
	// Slug of the environment, such as prod.
	Environment string `json:"environment"`
	// Folder of what only castle reads and writes, such as /clusters/blue: the cluster's PKI and its administrators' credentials. No identity that
	// is in the cluster may read it.
	Path string `json:"path"`
	// Folder of what Flux needs: the user and token of the GitOps repository, and its age key. Left out it is flux below path.
	FluxPath string `json:"fluxPath,omitzero"`
	// Folder of what the GitOps repository's workloads ask for. Left out it is workloads below path.
	WorkloadsPath string `json:"workloadsPath,omitzero"`
	// Namespaces whose ExternalSecrets get something of workloadsPath. Left out they are those of the parts that gitops-repo renders.
	Namespaces []string `json:"namespaces,omitzero"`
}

// State is where OpenTofu's encrypted states are kept.
type State struct {
	// local keeps them in a volume of the engine, s3 in any S3-compatible store.
	Backend string `json:"backend"`
	// The store; its keys come from the secrets.
	S3 S3 `json:"s3,omitzero"`
}

// S3 is a store that speaks S3; its keys come by environment.
type S3 struct {
	// The bucket's name.
	Bucket string `json:"bucket"`
	// Region, for AWS itself.
	Region string `json:"region,omitzero"`
	// Address of the store, for any other than AWS.
	Endpoint string `json:"endpoint,omitzero"`
}
