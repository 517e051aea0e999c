package state

import (
	"path"
	"path/filepath"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
)

// file is a layer's state, in its folder or below its prefix.
const file = "terraform.tfstate"

// Backend is where OpenTofu keeps one state, as Terragrunt's remote_state and OpenTofu's backend block have it.
type Backend struct {
	Name   string         `json:"backend"` // "local" or "s3"
	Config map[string]any `json:"config"`
}

// Backends are those of a cluster's layers, by layer. folder is the one for local states. This is their only definition: the
// units get it by the environment, and what reads a state takes it as well.
func Backends(cluster *clusterconfig.Cluster, folder string) map[string]Backend {
	backends := map[string]Backend{}
	for _, layer := range layers.All {
		backends[layer.Name] = backend(cluster, folder, layer.Name)
	}
	return backends
}

func backend(cluster *clusterconfig.Cluster, folder, layer string) Backend {
	if cluster.State.Backend != clusterconfig.StateS3 {
		return Backend{Name: clusterconfig.StateLocal, Config: map[string]any{"path": filepath.Join(folder, layer, file)}}
	}
	s3 := cluster.State.S3
	// The keys come by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
	config := map[string]any{
		"bucket":       s3.Bucket,
		"key":          path.Join(cluster.Name, layer, file),
		"region":       s3.Region,
		"use_lockfile": true,
	}
	if s3.Endpoint != "" {
		config["endpoints"] = map[string]any{"s3": s3.Endpoint}
		config["use_path_style"] = true
		// These checks ask services that only AWS has.
		for _, check := range []string{"skip_credentials_validation", "skip_metadata_api_check", "skip_region_validation",
			"skip_requesting_account_id", "skip_s3_checksum"} {
			config[check] = true
		}
	}
	return Backend{Name: clusterconfig.StateS3, Config: config}
}
