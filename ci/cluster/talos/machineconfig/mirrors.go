package machineconfig

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
)

// mirrors are a document for each registry that has any.
func mirrors(c *clusterconfig.Cluster) ([]config.Document, error) {
	var documents []config.Document
	for _, registry := range slices.Sorted(maps.Keys(c.Talos.RegistryMirrors)) {
		document := cri.NewRegistryMirrorConfigV1Alpha1(registry)
		for _, address := range c.Talos.RegistryMirrors[registry] {
			where, err := url.Parse(address)
			if err != nil {
				return nil, fmt.Errorf("mirror of %s: %w", registry, err)
			}
			endpoint := cri.RegistryEndpoint{EndpointURL: meta.URL{URL: where}}
			if asItStands := strings.HasPrefix(where.Path, "/v2/"); asItStands {
				endpoint.EndpointOverridePath = &asItStands
			}
			document.RegistryEndpoints = append(document.RegistryEndpoints, endpoint)
		}
		documents = append(documents, document)
	}
	return documents, nil
}
