package talos

import (
	"context"
	"net/netip"
	"net/url"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
)

// VM is a virtual machine as the hypervisor's simulator starts it.
type VM struct {
	ID        int
	Name      string
	Host      string       // of the hypervisor
	Address   netip.Prefix // from its cloud-init drive
	Gateway   netip.Addr
	DNS       []netip.Addr
	Cores     int
	MemoryMiB int
	Disks     []VMDisk
	MAC       string
	UUID      string // that its firmware tells; empty where it has none, as a container
	// Bare says that the machine was not cloned: it starts Talos from elsewhere, as from an ISO, until that is installed to its disk.
	Bare bool
	Tags []string
}

// VMDisk is a disk of a virtual machine.
type VMDisk struct {
	SizeGiB int
}

// Interface is a network interface as a guest agent reports it.
type Interface struct {
	Name      string
	MAC       string
	Addresses []netip.Prefix
}

// Roles of a Node.
const (
	ControlPlaneRole = "controlplane"
	WorkerRole       = "worker"
)

// Node is a running machine as Kubernetes would see it.
type Node struct {
	Name              string // hostname of its configuration
	VMID              int
	Role              string
	Address           netip.Addr
	Cores             int
	MemoryMiB         int
	KubernetesVersion string // "v1.36.2", from the kubelet's image
	TalosVersion      string // "v1.13.9"
	// Shared are the folders that its configuration mounts into the kubelet so that mounts below them are seen on both sides.
	Shared []string
	// Labels and Taints are those of its configuration and its role; a taint is "value:effect" by its key.
	Labels, Taints map[string]string
}

// ControlPlane is what a control plane's machine configuration says about Kubernetes. Certificates and keys are PEM.
type ControlPlane struct {
	ClusterName       string
	Endpoint          *url.URL // "https://192.168.77.210:6443"
	CertSANs          []string
	CA                *x509.PEMEncodedCertificateAndKey
	AggregatorCA      *x509.PEMEncodedCertificateAndKey
	EtcdCA            *x509.PEMEncodedCertificateAndKey
	ServiceAccountKey []byte
	SecretboxSecret   string // base64, encrypts Secrets in etcd
	PodSubnets        []string
	ServiceSubnets    []string
	DNSDomain         string
	KubernetesVersion string   // "v1.36.2", from the API server's image
	Manifests         []string // YAML, which Talos applies where an object is not there
	Config            config.Provider
}

// Cluster is the world's Kubernetes. Calls for one node come in order; calls for several nodes come at the same time.
type Cluster interface {
	// ControlPlaneUp starts the static pods of a control plane and returns when its API server serves. An error, other than
	// the context's end, is logged and the call repeated after a second.
	ControlPlaneUp(ctx context.Context, node Node, config ControlPlane) error
	// ControlPlaneDown follows each ControlPlaneUp that returned nil: the machine stops, or etcd has lost its quorum.
	ControlPlaneDown(node Node)
	// NodeUp starts a kubelet, once some control plane of its cluster is up, and is called again with a node whose labels or taints
	// another configuration has changed. Errors as above.
	NodeUp(ctx context.Context, node Node) error
	// NodeDown follows each NodeUp that returned nil.
	NodeDown(node Node)
	// Pull pulls an image for the pods of a node, which need not be up yet, and returns when the image is there.
	Pull(ctx context.Context, node Node, image string) error
	// VIP gives the virtual address to a node, or to none where holder is nil.
	VIP(address netip.Addr, holder *Node)
}
