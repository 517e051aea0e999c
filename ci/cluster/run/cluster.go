// Package run is what every verb on a cluster stands on: the described cluster, the access that its secrets give, the lock and
// the record of a run, and the conductor, which walks the layers, runs Terragrunt in each one's unit and does what goes before and after. It
// never writes a secret to a disk.
package run

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/charts"
	"tazlab.net/castle/ci/cluster/layers/environment"
	"tazlab.net/castle/ci/cluster/layers/providers"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// Tools are the programs that the layers are run with.
type Tools struct {
	Terragrunt string // "terragrunt"
	Tofu       string // OpenTofu; Terraform has no state encryption and is refused by the states
	Charts     string // folder with the charts that the layers install
	Providers  string // the lock file of the providers that were downloaded beforehand; need not be there
}

// Cluster is a described cluster, and what is needed to work on it.
type Cluster struct {
	Folder string // cluster.yaml's, with the files that it names
	// Layers is the folder of root.hcl, the units, their modules and the list of charts.
	Layers string
	State  string // folder for states, runs and the lock; outlives the call
	AgeKey string // decrypts the SOPS file
	Tools  Tools
	Out    io.Writer // step lines
	Scaled bool      // a sandbox whose delays are not a homelab's: no run is compared with the record
	// LocalStates says that somebody has accepted, for this call, that a real cluster's states are in State alone.
	LocalStates bool
	// AllowUnpinned says that somebody has accepted, for this call, charts and providers that nothing says what they should be.
	AllowUnpinned bool
	// Owner is the ID of an owner of what is there, typed by a person for a removal: state.Store's Belongs.
	Owner string
	// GateTimeout is how long each layer's own gate may take; 0 is the gate's own limit.
	GateTimeout time.Duration
	// Flags are the command's own, as a Dagger call takes them: for the text that says how to go on.
	Flags []string

	Description *config.Cluster // what Load has read

	roots        *x509.CertPool // whose signature on Proxmox's certificate counts; nil: the system's
	certificates string         // file with them, for the tools; empty where the system's do
}

// Load reads the description and refuses one with mistakes, and one of a platform that castle cannot work on yet.
func (c *Cluster) Load() error {
	description, err := config.Load(c.Folder)
	if err != nil {
		return err
	}
	if err := description.Unready(); err != nil {
		return err
	}
	if err := machineconfig.Check(description); err != nil {
		return fmt.Errorf("patches of the machine configuration: %w", err)
	}
	c.Description = description
	certificates, err := description.Proxmox.Certificates(c.Folder)
	if err != nil {
		return err
	}
	if c.roots, err = hypervisor.Roots(certificates); err != nil {
		return err
	}
	return os.MkdirAll(c.State, 0o700)
}

// LoadForLayers is Load, for what runs the layers: they have to be there.
func (c *Cluster) LoadForLayers() error {
	if err := c.Load(); err != nil {
		return err
	}
	if c.Layers == "" {
		return errors.New("it is not known where the layers are: name their folder with --layers")
	}
	for _, layer := range layers.Of(c.Description) {
		if _, err := os.Stat(filepath.Join(c.units(), layer.Folder, "terragrunt.hcl")); err != nil {
			return fmt.Errorf("%s is no folder with castle's layers, %s is not there: %w", c.Layers, layer.Name, err)
		}
	}
	if err := c.layersFit(); err != nil {
		return err
	}
	return c.proven()
}

// proven refuses downloads that nothing says what they should be: providers get the cluster's secrets, and charts decide what runs in it.
// A sandbox has no secret that is worth anything.
func (c *Cluster) proven() error {
	if c.AllowUnpinned || c.Description.Platform == config.PlatformSandbox {
		return nil
	}
	unproven, err := charts.Unproven(c.Tools.Charts, c.State)
	if err != nil {
		return err
	}
	fetched, err := providers.Unproven(c.Tools.Providers, c.Layers, c.State)
	if err != nil {
		return err
	}
	if unproven = append(unproven, fetched...); len(unproven) == 0 {
		return nil
	}
	return fmt.Errorf(`nothing says what these downloads should be, and they get the cluster's secrets or decide what runs in it:
  %s
from a network that you trust, write their hashes into layers of your own, look at them and commit them: dagger call pin export --path layers
or accept for this call what came, which a first create then notes: dagger call --allow-unpinned …`, strings.Join(unproven, "\n  "))
}

// layersFit refuses layers that were ejected from an older castle: before each layer got its own secrets, when their OpenTofu would get none,
// or before castle itself did what their hooks call it for.
func (c *Cluster) layersFit() error {
	file := filepath.Join(c.Layers, "root.hcl")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(environment.VariableLayer)) {
		return fmt.Errorf(`%s does not tell castle which layer OpenTofu runs for, and castle gives it the secrets of its layer alone;
add to its block terraform:
  extra_arguments "layer" {
    commands = ["init", "apply", "destroy", "plan", "show"]
    env_vars = { %s = local.layer }
  }`, file, environment.VariableLayer)
	}
	if oldHook.Match(text) {
		return fmt.Errorf(`%s has hooks that call castle-cluster, and castle does by itself now what they were for: remove from its block terraform
the before_hook, after_hook and error_hook blocks whose execute names castle-cluster, and the extra_arguments "ahead"`, file)
	}
	return nil
}

// oldHook is a hook of Terragrunt's that calls castle.
var oldHook = regexp.MustCompile(`(?m)^\s*execute\s*=.*"castle-cluster"`)

// units is the folder that Terragrunt runs in.
func (c *Cluster) units() string { return filepath.Join(c.Layers, layers.UnitsFolder) }

// StatesAreKept refuses to work on the states of a real cluster that are local, unless the caller has accepted that: what Dagger calls a
// volume depends on how the module was addressed, so that a clone, a URL and another engine each see states of their own.
func (c *Cluster) StatesAreKept() error {
	if c.Description.State.Backend != config.StateLocal || c.Description.Platform == config.PlatformSandbox || c.LocalStates {
		return nil
	}
	return fmt.Errorf(`cluster %s has its states in a volume of this engine (state.backend: local), which no other machine sees, and no call by another address of the module:
write backend s3 into cluster.yaml, or accept that in each call with dagger call --state local …`, c.Description.Name)
}
