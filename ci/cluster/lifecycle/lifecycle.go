// Package lifecycle creates, plans, inspects and destroys a cluster: it resolves the secrets, has Terragrunt run the
// layers with them in the environment, and keeps the run's record. It never orders layers itself, and it never writes a
// secret to a disk.
package lifecycle

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/talos"
)

// Layers, by the names that people read; the folders are numbered.
const (
	LayerSecrets    = "secrets"
	LayerPlatform   = "platform"
	LayerEngine     = "engine"
	LayerNetworking = "networking"
	LayerStorage    = "storage"
	LayerGitOps     = "gitops"
)

// layers in the order of their folders, each with the layers that it needs to start, and those whose objects it waits for
// on its way. The units' own dependencies decide what runs when; the needs are for the critical path of the time line.
var layers = []struct {
	name, folder string
	needs        []string
	awaits       []string
}{
	{LayerSecrets, "1-secrets", nil, nil},
	{LayerPlatform, "2-platform", []string{LayerSecrets}, nil},
	{LayerEngine, "3-engine", []string{LayerPlatform}, nil},
	{LayerNetworking, "4-networking", []string{LayerPlatform}, nil},
	{LayerStorage, "5-storage", []string{LayerPlatform}, nil},
	{LayerGitOps, "6-gitops", []string{LayerPlatform}, []string{LayerEngine}},
}

func layerOf(folder string) string {
	for _, layer := range layers {
		if layer.folder == folder {
			return layer.name
		}
	}
	return folder
}

// Tools are the programs that the layers are run with.
type Tools struct {
	Terragrunt string // "terragrunt"
	Tofu       string // OpenTofu; Terraform has no state encryption and is refused by the states
	Charts     string // folder with the charts that the layers install
}

// Cluster is a described cluster, and what is needed to work on it.
type Cluster struct {
	Folder string // terragrunt/live/<name>
	State  string // folder for states, runs and the lock; outlives the call
	AgeKey string // decrypts the SOPS file
	Tools  Tools
	Out    io.Writer // step lines
	Scaled bool      // a sandbox whose delays are not a homelab's: no run is compared with the record

	PullAhead bool // Create has the machines pull the layers' images as soon as they run

	description *description.Cluster
}

// load reads the description and refuses one with mistakes.
func (c *Cluster) load() error {
	description, err := description.Load(c.Folder)
	if err != nil {
		return err
	}
	c.description = description
	for _, layer := range layers {
		if _, err := os.Stat(filepath.Join(c.Folder, layer.folder, "terragrunt.hcl")); err != nil {
			return fmt.Errorf("the layer %s of cluster %s is not there: %w", layer.name, description.Name, err)
		}
	}
	return os.MkdirAll(c.State, 0o700)
}

// access is what the secrets give access to.
type access struct {
	values *secrets.Values
	talos  string // the machine secrets as they are kept, YAML
	bundle *talos.Bundle
	kube   talos.Kube

	// encryption is the value of TF_ENCRYPTION, derived once: stretching the passphrase takes a good part of a second, and
	// every look at a state asks for it.
	encryption func() (string, error)
}

// newAccess derives what the secrets give access to; machines is the machine secrets as YAML.
func newAccess(description *description.Cluster, values *secrets.Values, machines string) (*access, error) {
	bundle, err := talos.ParseSecrets([]byte(machines))
	if err != nil {
		return nil, err
	}
	kube, _, err := talos.AdminKube(description, bundle, adminTTL)
	if err != nil {
		return nil, err
	}
	return &access{values: values, talos: machines, bundle: bundle, kube: kube, encryption: sync.OnceValues(func() (string, error) {
		passphrase, _ := values.Get(secrets.StatePassphrase)
		return secrets.StateEncryption(description.Name, passphrase)
	})}, nil
}

// secret lists what must not be shown.
func (a *access) secret() []string {
	return append(a.values.Redactions(), a.talos, string(a.kube.Key))
}

// resolve gets the secrets and the cluster's own certificates. Where Infisical holds no machine secrets yet they are made,
// and with keep stored there, before anything is built that would be lost without them.
func (c *Cluster) resolve(ctx context.Context, keep bool) (*access, error) {
	// A second or two of a processor's time, which Infisical's answers take anyway.
	machines := sync.OnceValues(func() ([]byte, error) { return talos.NewSecrets(c.description) })
	if keep {
		go machines() // its error is found when they are asked for
	}
	values, err := secrets.Resolve(ctx, c.description, secrets.Inputs{Folder: c.Folder, AgeKey: c.AgeKey})
	if err != nil {
		return nil, err
	}
	text, has := values.Get(secrets.TalosSecrets)
	if !has {
		made, err := machines()
		if err != nil {
			return nil, err
		}
		text = string(made)
		if keep {
			if err := values.Put(ctx, secrets.TalosSecrets, text); err != nil {
				return nil, err
			}
		}
	}
	return newAccess(c.description, values, text)
}
