package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"
)

// stateFile is where the local backend keeps a layer's state below the state folder; terragrunt/root.hcl says the same.
const stateFile = "terraform.tfstate"

// resources are the addresses of what a layer's state holds, without data sources; nil where there is no state.
func (c *Cluster) resources(ctx context.Context, access *access, layer string) ([]string, error) {
	environment, err := c.environment(access, os.DevNull)
	if err != nil {
		return nil, err
	}
	folder, err := c.stateFolder(layer)
	if err != nil || folder == "" {
		return nil, err
	}
	if c.description.State.Backend != "local" {
		defer os.RemoveAll(folder)
	}
	tofu, err := tfexec.NewTerraform(folder, c.Tools.Tofu)
	if err != nil {
		return nil, err
	}
	if err := tofu.SetEnv(forTerraformExec(environment)); err != nil {
		return nil, err
	}
	if c.description.State.Backend != "local" {
		if err := tofu.Init(ctx); err != nil {
			return nil, fmt.Errorf("open the state of layer %s: %w", layer, err)
		}
	}
	text, err := tofu.StatePull(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the state of layer %s: %w", layer, err)
	}
	return addresses(text)
}

// stateFolder is a folder in which OpenTofu finds a layer's state: the state's own, or for a remote one a new folder that
// names the backend. It is "" where a local state is not there.
func (c *Cluster) stateFolder(layer string) (string, error) {
	s3 := c.description.State.S3
	if c.description.State.Backend == "local" {
		folder := filepath.Join(c.State, layer)
		if _, err := os.Stat(filepath.Join(folder, stateFile)); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return "", err
		}
		return folder, nil
	}
	backend := map[string]any{"bucket": s3.Bucket, "region": s3.Region, "key": filepath.Join(c.description.Name, layer, stateFile), "use_lockfile": true}
	if s3.Endpoint != "" {
		backend["endpoints"] = map[string]string{"s3": s3.Endpoint}
		backend["use_path_style"], backend["skip_credentials_validation"] = true, true
		backend["skip_requesting_account_id"], backend["skip_region_validation"] = true, true
	}
	data, err := json.Marshal(map[string]any{"terraform": map[string]any{"backend": map[string]any{"s3": backend}}})
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "state-")
	if err != nil {
		return "", err
	}
	return folder, os.WriteFile(filepath.Join(folder, "backend.tf.json"), data, 0o600)
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

// addresses lists the managed resources of a state, "module.x.type.name[key]".
func addresses(state string) ([]string, error) {
	if strings.TrimSpace(state) == "" {
		return nil, nil
	}
	var parsed struct {
		Resources []struct {
			Module    string `json:"module"`
			Mode      string `json:"mode"`
			Type      string `json:"type"`
			Name      string `json:"name"`
			Instances []struct {
				Key any `json:"index_key"`
			} `json:"instances"`
		} `json:"resources"`
	}
	if err := json.Unmarshal([]byte(state), &parsed); err != nil {
		return nil, fmt.Errorf("a state that is no JSON: %w", err)
	}
	list := []string{}
	for _, resource := range parsed.Resources {
		if resource.Mode != "managed" {
			continue
		}
		address := resource.Type + "." + resource.Name
		if resource.Module != "" {
			address = resource.Module + "." + address
		}
		for _, instance := range resource.Instances {
			if instance.Key == nil {
				list = append(list, address)
			} else {
				list = append(list, fmt.Sprintf("%s[%#v]", address, instance.Key))
			}
		}
	}
	return list, nil
}
