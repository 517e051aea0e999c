package talos

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// settings are what the simulator reads out of a machine configuration.
type settings struct {
	provider config.Provider
	control  bool
	hostname string
	address  netip.Addr // invalid: keep the VM's
	vip      netip.Addr // invalid: none
	machine  string     // fingerprint of the machines' authority
	etcd     string     // fingerprint of etcd's authority, of a control plane
	cluster  string     // fingerprint of the authority of Kubernetes
	sans     []string
}

// virtualMachine is the mode that a configuration is validated for.
type virtualMachine struct{}

func (virtualMachine) String() string        { return "cloud" }
func (virtualMachine) RequiresInstall() bool { return true }
func (virtualMachine) InContainer() bool     { return false }

func parse(data []byte) (*settings, error) {
	provider, err := configloader.NewFromBytes(data)
	if err != nil {
		return nil, err
	}
	if provider.RawV1Alpha1() == nil || provider.Machine() == nil || provider.Cluster() == nil {
		return nil, errors.New("the machine configuration has no v1alpha1 document")
	}
	if _, err := provider.Validate(virtualMachine{}); err != nil {
		return nil, err
	}
	s := &settings{
		provider: provider,
		control:  provider.Machine().Type().IsControlPlane(),
		hostname: provider.NetworkHostnameConfig().Hostname(),
		machine:  fingerprint(provider.Machine().Security().IssuingCA()),
		cluster:  fingerprint(provider.Cluster().IssuingCA()),
		sans:     provider.Machine().Security().CertSANs(),
	}
	if s.hostname == "" {
		return nil, errors.New("the machine configuration has no hostname")
	}
	for _, link := range provider.NetworkCommonLinkConfigs() {
		for _, address := range link.Addresses() {
			if !s.address.IsValid() {
				s.address = address.Address().Addr()
			}
		}
	}
	if s.control {
		s.etcd = fingerprint(provider.Cluster().Etcd().CA())
		for _, virtual := range provider.NetworkVirtualIPConfigs() {
			s.vip = virtual.VIP()
		}
	}
	return s, nil
}

func (s *settings) role() string {
	if s.control {
		return ControlPlaneRole
	}
	return WorkerRole
}

// labels are what Talos gives the Node (siderolabs/talos, internal/app/machined/pkg/controllers/k8s/node_label_spec.go).
func (s *settings) labels() map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, s.provider.Machine().NodeLabels())
	if s.control {
		labels[constants.LabelNodeRoleControlPlane] = ""
	}
	return labels
}

// sharedMounts are folders that the kubelet has from the machine so that each sees what is mounted below them.
func (s *settings) sharedMounts() []string {
	var folders []string
	for _, mount := range s.provider.Machine().Kubelet().ExtraMounts() {
		if slices.Contains(mount.Options, "rshared") && mount.Source == mount.Destination {
			folders = append(folders, mount.Source)
		}
	}
	return folders
}

// taints are what Talos gives the Node (node_taint_spec.go, beside it): "value:effect" by key.
func (s *settings) taints() map[string]string {
	taints := map[string]string{}
	for key, value := range s.provider.Machine().NodeTaints() {
		if !strings.Contains(value, ":") { // it is the effect alone, pkg/machinery/labels/validate.go
			value = ":" + value
		}
		taints[key] = value
	}
	if s.control && !s.provider.Cluster().ScheduleOnControlPlanes() {
		taints[constants.LabelNodeRoleControlPlane] = ":NoSchedule"
	}
	return taints
}

func (s *settings) controlPlane() ControlPlane {
	c := s.provider.Cluster()
	return ControlPlane{
		Manifests:   s.manifests(),
		ClusterName: c.Name(), Endpoint: c.Endpoint(), CertSANs: c.CertSANs(),
		CA: c.IssuingCA(), AggregatorCA: c.AggregatorCA(), EtcdCA: c.Etcd().CA(), ServiceAccountKey: c.ServiceAccount().Key,
		SecretboxSecret: c.SecretboxEncryptionSecret(),
		PodSubnets:      c.Network().PodCIDRs(), ServiceSubnets: c.Network().ServiceCIDRs(), DNSDomain: c.Network().DNSDomain(),
		KubernetesVersion: tag(c.APIServer().Image()), Config: s.provider,
	}
}

// staticPods are the images of those, which the kubelet pulls once Talos has given them to it.
func (s *settings) staticPods() []string {
	c := s.provider.Cluster()
	return []string{c.APIServer().Image(), c.ControllerManager().Image(), c.Scheduler().Image()}
}

// tag is the tag of an image's name.
func tag(image string) string {
	_, after, found := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !found {
		return ""
	}
	before, _, _ := strings.Cut(after, "@")
	return before
}

func fingerprint(pair *x509.PEMEncodedCertificateAndKey) string {
	if pair == nil {
		return ""
	}
	sum := sha256.Sum256(pair.Crt)
	return hex.EncodeToString(sum[:])
}
