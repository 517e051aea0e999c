package run

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// Access is what the secrets give access to.
type Access struct {
	Values *secrets.Values
	Bundle *machineconfig.Bundle
	Kube   machineconfig.Kube

	machines string // the machine secrets as they are kept, YAML
	// encryption is the value of TF_ENCRYPTION, derived once: stretching the passphrase takes a good part of a second, and
	// every look at a state asks for it.
	encryption func() (string, error)
}

// API is a client of the cluster's API. Nothing is asked yet.
func (a *Access) API() (*kube.Client, error) {
	return kube.Connect(a.Kube.Host, a.Kube.CA, a.Kube.Cert, a.Kube.Key)
}

// newAccess derives what the secrets give access to, and has this process redact it; machines is the machine secrets as YAML.
func newAccess(described *config.Cluster, values *secrets.Values, machines string) (*Access, error) {
	bundle, err := machineconfig.ParseSecrets([]byte(machines))
	if err != nil {
		return nil, err
	}
	redact.Add(machines)
	kube, err := machineconfig.AdminKube(described, bundle, adminTTL)
	if err != nil {
		return nil, err
	}
	redact.Add(string(kube.Key))
	return &Access{Values: values, machines: machines, Bundle: bundle, Kube: kube, encryption: sync.OnceValues(func() (string, error) {
		return encryptionOf(described, values)
	})}, nil
}

// Open reads the description and resolves the secrets, for a command that keeps no record and makes nothing.
func (c *Cluster) Open(ctx context.Context) (*Access, error) {
	if err := c.Load(); err != nil {
		return nil, err
	}
	return c.Resolve(ctx, false)
}

// OpenCreated is Open for what is of no use with a PKI that this call has made up.
func (c *Cluster) OpenCreated(ctx context.Context) (*Access, error) {
	access, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	if _, has := access.Values.Get(secrets.TalosSecrets); !has {
		return nil, neverCreated(c.Description)
	}
	return access, nil
}

// OpenStates is Open for what looks at the states or changes them by hand.
func (c *Cluster) OpenStates(ctx context.Context) (*Access, state.Store, error) {
	if err := c.Load(); err != nil {
		return nil, state.Store{}, err
	}
	if err := c.StatesAreKept(); err != nil {
		return nil, state.Store{}, err
	}
	access, err := c.Resolve(ctx, false)
	if err != nil {
		return nil, state.Store{}, err
	}
	states, err := c.StatesOf(ctx, access)
	return access, states, err
}

// StatesOf are the layers' states, once it is known that they are this cluster's.
func (c *Cluster) StatesOf(ctx context.Context, access *Access) (state.Store, error) {
	me, err := c.Identity(access.Values)
	if err != nil {
		return state.Store{}, err
	}
	states, err := c.States(access)
	if err != nil {
		return state.Store{}, err
	}
	return states, states.Belongs(ctx, me, "")
}

// Resolve gets the secrets and the cluster's own certificates. Where Infisical holds no machine secrets yet they are made,
// and with keep stored there; without Infisical they are in the SOPS files or nothing is resolved. Both happens before anything
// is built that would be lost without them.
func (c *Cluster) Resolve(ctx context.Context, keep bool) (*Access, error) {
	access, _, err := c.resolve(ctx, keep, nil)
	return access, err
}

// Look looks at what a run stands on, beside its reading of the secrets, and says what speaks against it. values waits for the secrets;
// they are nil where they could not be had.
type Look func(ctx context.Context, values func() *secrets.Values) error

// resolve is Resolve that makes nothing where something speaks against the run: then there is no access, and objection says what.
func (c *Cluster) resolve(ctx context.Context, keep bool, look Look) (access *Access, objection, err error) {
	// Half a second of a processor's time and more, which pass while Infisical answers. Where a run was before, they are made already.
	machines := sync.OnceValues(func() ([]byte, error) { return machineconfig.NewSecrets(c.Description) })
	if keep && c.Description.Secrets.Infisical.Has() && !c.ranBefore() {
		go machines() // its error is found when they are asked for
	}
	// So does what it takes to stretch the passphrase, which is in the files.
	encryption := sync.OnceValues(func() (string, error) {
		values, err := secrets.FromFiles(c.Description, c.inputs())
		if err != nil {
			return "", err
		}
		return encryptionOf(c.Description, values)
	})
	if keep {
		go encryption() // as above
	}
	values, objection, err := c.read(ctx, keep, look)
	if objection != nil || err != nil {
		return nil, objection, err
	}
	if keep && c.Description.Secrets.Infisical.Has() {
		if err := c.share(ctx, values); err != nil {
			return nil, nil, err
		}
	}
	text, has := values.Get(secrets.TalosSecrets)
	if !has {
		made, err := machines()
		if err != nil {
			return nil, nil, err
		}
		text = string(made)
		if keep {
			if text, err = values.Establish(ctx, secrets.TalosSecrets, text); err != nil {
				return nil, nil, err
			}
		}
	}
	if access, err = newAccess(c.Description, values, text); err != nil {
		return nil, nil, err
	}
	if keep {
		access.encryption = encryption
	}
	return access, nil, nil
}

func (c *Cluster) inputs() secrets.Inputs { return secrets.Inputs{Folder: c.Folder, AgeKey: c.AgeKey} }

// encryptionOf is the value of TF_ENCRYPTION.
func encryptionOf(described *config.Cluster, values *secrets.Values) (string, error) {
	passphrase, _ := values.Get(secrets.StatePassphrase)
	return secrets.StateEncryption(described.Name, passphrase)
}

// read gets the secrets, and looks meanwhile.
func (c *Cluster) read(ctx context.Context, create bool, look Look) (values *secrets.Values, objection, err error) {
	in := c.inputs()
	in.Create = create
	if look == nil {
		values, err = secrets.Resolve(ctx, c.Description, in)
		return values, nil, err
	}
	read, looked := make(chan struct{}), make(chan error, 1)
	go func() {
		looked <- look(ctx, func() *secrets.Values {
			<-read
			return values
		})
	}()
	values, err = secrets.Resolve(ctx, c.Description, in)
	close(read)
	return values, <-looked, err
}

// share gives the identities that go into the cluster their folders in Infisical, and proves that they read them: a layer that waits for that
// would fail when the machines are there.
func (c *Cluster) share(ctx context.Context, values *secrets.Values) error {
	copied, err := values.Share(ctx, c.Description, c.inputs())
	if len(copied) > 0 {
		fmt.Fprintf(c.Out, "copied to %s in Infisical, where the cluster's workloads may read it: %s; remove there what none of them needs\n",
			c.Description.Secrets.Infisical.WorkloadsPath, strings.Join(copied, ", "))
	}
	return err
}

// Hypervisor is the cluster's Proxmox, to be closed when done.
func (c *Cluster) Hypervisor(access *Access) *hypervisor.Hypervisor {
	return c.Proxmox(access.Values)
}

// States are the layers' states.
func (c *Cluster) States(access *Access) (state.Store, error) {
	given, err := c.given(access, os.DevNull, nil)
	if err != nil {
		return state.Store{}, err
	}
	states := c.StateFiles(access.Values)
	states.Tofu, states.Environment = c.Tools.Tofu, given.forStates()
	return states, nil
}

// Machines is access to the machines' API, to be closed when done.
func (c *Cluster) Machines(access *Access) (*talos.Access, error) {
	return talos.Dial(c.Description, access.Bundle, talos.Options{})
}
