package mirror

import (
	"bytes"
	"fmt"
	"slices"

	"tazlab.net/castle/ci/setup/images"
)

// usual are the registries that users' own pipelines name most often beside those of images.yaml.
var usual = []string{"docker.io", "ghcr.io", "quay.io", "registry.k8s.io"}

// EngineConfig is the registry part of engine.toml: for every registry that the list names, and for the usual ones,
// the mirror is asked first, and the registry itself where the mirror does not have the image. The address has the form
// that Sync and Verify take. The result is the same for the same arguments.
func EngineConfig(list images.List, mirrorAddress string) ([]byte, error) {
	mirror, err := parseAddress(mirrorAddress)
	if err != nil {
		return nil, err
	}
	hosts := slices.Clone(usual)
	for _, image := range list {
		hosts = append(hosts, image.Registry())
	}
	slices.Sort(hosts)
	var config bytes.Buffer
	for _, host := range slices.Compact(hosts) {
		if host == mirror.host {
			continue
		}
		fmt.Fprintf(&config, "[registry.%q]\n  mirrors = [%q]\n\n", host, mirror.String())
	}
	fmt.Fprintf(&config, "[registry.%q]\n  http = %t\n", mirror.host, mirror.plain)
	return config.Bytes(), nil
}
