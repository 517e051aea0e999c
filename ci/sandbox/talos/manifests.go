package talos

import (
	_ "embed"
	"strings"
	"text/template"

	"github.com/siderolabs/talos/pkg/machinery/constants"
)

//go:embed bootstrap.yaml
var bootstrapText string

var bootstrapManifests = template.Must(template.New("bootstrap").Parse(bootstrapText))

// FlannelImage is what Talos runs where its configuration leaves the pods' network to it (pkg/images/list.go of siderolabs/talos v1.13.9).
const FlannelImage = "ghcr.io/siderolabs/flannel:" + constants.FlannelVersion

// manifests are what Talos applies once the API serves: its own, and those of the configuration.
func (s *settings) manifests() []string {
	c := s.provider.Cluster()
	type service struct{ Image, Address string }
	var own struct {
		Flannel, Proxy string
		DNS            *service
	}
	if c.Network().CNI().Name() == constants.FlannelCNI {
		own.Flannel = FlannelImage
	}
	if c.Proxy().Enabled() {
		own.Proxy = c.Proxy().Image()
	}
	if c.CoreDNS().Enabled() {
		own.DNS = &service{Image: c.CoreDNS().Image()}
		// A control plane does not come up with subnets that cannot be read.
		if addresses, err := c.Network().DNSServiceIPs(); err == nil {
			own.DNS.Address = addresses[0].String()
		}
	}
	var text strings.Builder
	if err := bootstrapManifests.Execute(&text, own); err != nil {
		panic(err) // it was parsed, and strings cannot fail
	}
	all := []string{text.String()}
	for _, manifest := range c.InlineManifests() {
		all = append(all, manifest.Contents())
	}
	return all
}
