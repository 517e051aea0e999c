// Package description reads a cluster's description, terragrunt/live/<name>/cluster.yaml, and finds every mistake in it. It
// never contacts what the description names.
package description

import (
	"net/netip"
)

// File is the description's name in a cluster's folder. HCL reads the same file with yamldecode.
const File = "cluster.yaml"

// Platforms that a cluster can stand on.
const (
	PlatformProxmox = "proxmox"
	PlatformAWS     = "aws"
	PlatformSandbox = "sandbox" // the proving ground: simulated Proxmox, Talos and Infisical, everything else real
)

// Roles of a node.
const (
	RoleControlPlane = "controlplane"
	RoleWorker       = "worker"
)

// What may encrypt the EPHEMERAL partition.
const (
	EncryptionNodeID = "nodeID" // a key derived from the VM's own id
	EncryptionNone   = "none"
)

// Where states may be kept.
const (
	StateLocal     = "local" // a volume of the engine
	StateS3Backend = "s3"
)

// Cluster is the whole description.
type Cluster struct {
	Name         string       `yaml:"name"`
	Platform     string       `yaml:"platform"`
	Endpoint     netip.Addr   `yaml:"endpoint"` // the virtual IP of the Kubernetes API, held by one control plane at a time
	Network      Network      `yaml:"network"`
	Proxmox      Proxmox      `yaml:"proxmox"`
	VMIDs        Range        `yaml:"vmIDs"` // ids that belong to this cluster, the only ones that a wipe may touch
	Nodes        []Node       `yaml:"nodes"`
	Talos        Talos        `yaml:"talos"`
	Kubernetes   Kubernetes   `yaml:"kubernetes"`
	LoadBalancer LoadBalancer `yaml:"loadBalancer"`
	Storage      Storage      `yaml:"storage"`
	GitOps       GitOps       `yaml:"gitops"`
	Secrets      Secrets      `yaml:"secrets"`
	State        State        `yaml:"state"`
}

// Network is the subnet that all nodes and the virtual IP stand in.
type Network struct {
	Subnet  netip.Prefix `yaml:"subnet"`
	Gateway netip.Addr   `yaml:"gateway"`
	DNS     []netip.Addr `yaml:"dns"`
}

// Proxmox is where the VMs are made. Every VM is a full clone of the template, a Talos "nocloud" image, so that it takes
// its static address from its cloud-init drive.
type Proxmox struct {
	URL      string `yaml:"url"`      // "https://192.168.1.10:8006/"
	Insecure bool   `yaml:"insecure"` // accept the certificate that Proxmox signed itself
	Template int    `yaml:"template"` // VM id of the template
	Storage  string `yaml:"storage"`  // where cloned disks go, "local-lvm"
	Bridge   string `yaml:"bridge"`   // "vmbr0"
}

// Range is a range of VM ids, both ends included.
type Range struct {
	First int `yaml:"first"`
	Last  int `yaml:"last"`
}

// Node is one VM.
type Node struct {
	Name    string     `yaml:"name"`
	Role    string     `yaml:"role"`
	Address netip.Addr `yaml:"address"`
	VMID    int        `yaml:"vmID"`
	Host    string     `yaml:"host"` // Proxmox node that it runs on
	Cores   int        `yaml:"cores"`
	Memory  int        `yaml:"memory"` // MiB
	Disks   []Disk     `yaml:"disks"`  // the first one is installed to
}

// Disk is a disk of a VM.
type Disk struct {
	Size int `yaml:"size"` // GiB
}

// Talos is what the machine configuration is generated from.
type Talos struct {
	Version        string         `yaml:"version"`       // "v1.13.0"
	Schematic      string         `yaml:"schematic"`     // id of the image factory's schematic that holds the extensions
	Extensions     []string       `yaml:"extensions"`    // "siderolabs/iscsi-tools"
	KernelModules  []string       `yaml:"kernelModules"` // only ones that this version of Talos ships
	DiskEncryption DiskEncryption `yaml:"diskEncryption"`
}

// DiskEncryption says what encrypts the EPHEMERAL partition: "nodeID" (the default) or "none".
type DiskEncryption struct {
	Ephemeral string `yaml:"ephemeral"`
}

// Kubernetes is the version and the two internal networks.
type Kubernetes struct {
	Version       string       `yaml:"version"` // "v1.36.2"
	PodSubnet     netip.Prefix `yaml:"podSubnet"`
	ServiceSubnet netip.Prefix `yaml:"serviceSubnet"`
}

// LoadBalancer is what MetalLB hands out.
type LoadBalancer struct {
	Pool []string `yaml:"pool"` // "192.168.1.220-192.168.1.239" or "192.168.1.224/28"
}

// Storage configures Longhorn, or on the sandbox the chart that stands in for it.
type Storage struct {
	Replicas     int    `yaml:"replicas"`
	DataPath     string `yaml:"dataPath"`     // "/var/lib/longhorn"
	StorageClass string `yaml:"storageClass"` // the default class, "longhorn"
}

// GitOps is what Flux reconciles.
type GitOps struct {
	URL    string `yaml:"url"`
	Branch string `yaml:"branch"`
	Path   string `yaml:"path"` // folder of this cluster in the repository, "clusters/blue"
}

// Secrets names the sources; no value stands here.
type Secrets struct {
	SOPS      string    `yaml:"sops"` // file beside the description, "secrets.sops.yaml"
	Infisical Infisical `yaml:"infisical"`
}

// Infisical is the project that holds the cluster's secrets.
type Infisical struct {
	URL         string `yaml:"url"`         // "https://eu.infisical.com"
	Project     string `yaml:"project"`     // the project's id
	Slug        string `yaml:"slug"`        // the project's slug, which External Secrets Operator asks by
	Environment string `yaml:"environment"` // slug of the environment, "prod"
	Path        string `yaml:"path"`        // folder of the cluster's secrets, "/clusters/blue"
}

// State is where OpenTofu's encrypted states are kept.
type State struct {
	Backend string  `yaml:"backend"` // "local" or "s3"
	S3      StateS3 `yaml:"s3"`
}

// StateS3 is any S3-compatible store; its keys come by environment.
type StateS3 struct {
	Bucket   string `yaml:"bucket"`
	Region   string `yaml:"region"`
	Endpoint string `yaml:"endpoint"` // empty for AWS itself
}
