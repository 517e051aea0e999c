package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/create"
	"tazlab.net/castle/ci/cluster/destroy"
	"tazlab.net/castle/ci/cluster/drain"
	"tazlab.net/castle/ci/cluster/forget"
	"tazlab.net/castle/ci/cluster/outputs"
	"tazlab.net/castle/ci/cluster/plan"
	"tazlab.net/castle/ci/cluster/removenode"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/status"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
	"tazlab.net/castle/ci/cmd/cli"
)

const sealKeyVariable = "CASTLE_SEAL_KEY"

// clusterFlags are those of every command on a cluster.
type clusterFlags struct {
	cluster run.Cluster
}

func (c *clusterFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&c.cluster.Folder, "folder", "", "the folder with the cluster's cluster.yaml")
	flags.StringVar(&c.cluster.Layers, "layers", "", "the folder with the layers: root.hcl, units, modules")
	flags.StringVar(&c.cluster.State, "state", "", "the folder for states and records")
	flags.BoolVar(&c.cluster.LocalStates, "local-states", false, "accept that a real cluster's states are in that folder alone (state.backend: local)")
	flags.BoolVar(&c.cluster.AllowUnpinned, "allow-unpinned", false, "accept charts and providers that nothing says what they should be")
	flags.BoolVar(&c.cluster.Scaled, "scaled", false, "the sandbox's delays are not a homelab's: compare nothing with the record")
	flags.StringVar(&c.cluster.Tools.Charts, "charts", "/usr/share/castle/charts", "the folder with the charts")
	flags.StringVar(&c.cluster.Tools.Providers, "providers", "/usr/share/castle/providers.lock.hcl", "the lock file of providers that were downloaded beforehand")
	flags.StringVar(&c.cluster.Tools.Terragrunt, "terragrunt-program", "terragrunt", "Terragrunt's name or path")
	flags.StringVar(&c.cluster.Tools.Tofu, "tofu-program", "tofu", "OpenTofu's name or path")
}

// on makes a command that works on the cluster.
func (c *clusterFlags) on(use, short string, do func(*cobra.Command, *run.Cluster) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.cluster.AgeKey = os.Getenv(secrets.AgeKeyVariable)
			c.cluster.Out = cmd.ErrOrStderr()
			return do(cmd, &c.cluster)
		},
	}
}

func (c *clusterFlags) validate() *cobra.Command {
	return c.on("validate", "List every mistake of the description", func(cmd *cobra.Command, on *run.Cluster) error {
		description, err := checked(on.Folder)
		if err != nil {
			return err
		}
		api := "API at " + description.Endpoint.String()
		if !description.Endpoint.IsValid() {
			api = "API at a load balancer of AWS; castle creates nothing there yet"
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "cluster %s is described without mistakes: %d control planes and %d workers in %s, %s\n",
			description.Name, len(description.ControlPlanes()), len(description.Workers()), description.Network.Subnet, api)
		for _, warning := range description.Warnings() {
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), "warning: "+warning)
			}
		}
		return err
	})
}

// checked is the description, of whose patches Talos would take each.
func checked(folder string) (*config.Cluster, error) {
	described, err := config.Load(folder)
	if err != nil {
		return nil, err
	}
	return described, machineconfig.Check(described)
}

func (c *clusterFlags) describe() *cobra.Command {
	var format cli.Format
	command := c.on("describe", "Print the description with every default filled in", func(cmd *cobra.Command, on *run.Cluster) error {
		description, err := checked(on.Folder)
		if err != nil {
			return err
		}
		return format.Print(cmd, description)
	})
	format.Add(command)
	return command
}

func (c *clusterFlags) create() *cobra.Command {
	var format cli.Format
	var options create.Options
	command := c.on("create", "Bring the cluster up, or on from where an earlier run ended", func(cmd *cobra.Command, on *run.Cluster) error {
		result, err := create.Execute(cmd.Context(), on, options)
		return printRun(cmd, format, result, err)
	})
	command.Flags().BoolVar(&options.PullAhead, "pull-ahead", true, "have the machines pull the layers' images as soon as they run, before the layers install them")
	command.Flags().StringArrayVar(&options.AllowReplace, "allow-replace", nil, "a node, by name, whose VM may be removed or replaced with its disks, where cluster.yaml says so; several times")
	command.Flags().StringArrayVar(&options.RemoveLayers, "remove-layer", nil, "a layer, by name, that cluster.yaml does without by now (storage: none, loadBalancer: none) and that may be removed; several times")
	command.Flags().DurationVar(&c.cluster.GateTimeout, "gate-timeout", 0, "how long each layer's own gate may take; 0 is the gate's own limit")
	format.Add(command)
	return command
}

// printRun prints what a run led to, also that of one that failed: there, a person has read the steps, and a program or a job's
// summary has nothing else.
func printRun[T any, R interface {
	*T
	rendering.Result
}](cmd *cobra.Command, format cli.Format, result R, err error) error {
	if result == nil || err != nil && format.IsText() {
		return err
	}
	return errors.Join(err, format.Print(cmd, result))
}

func (c *clusterFlags) plan() *cobra.Command {
	var format cli.Format
	command := c.on("plan", "Show what create would change", func(cmd *cobra.Command, on *run.Cluster) error {
		made, err := plan.Execute(cmd.Context(), on)
		if err != nil {
			return err
		}
		return format.Print(cmd, made)
	})
	format.Add(command)
	return command
}

func (c *clusterFlags) status() *cobra.Command {
	var format cli.Format
	command := c.on("status", "Show layers, nodes and gates as they are now", func(cmd *cobra.Command, on *run.Cluster) error {
		seen, err := status.Execute(cmd.Context(), on)
		if err != nil {
			return err
		}
		return format.Print(cmd, seen)
	})
	format.Add(command)
	return command
}

func (c *clusterFlags) outputs() *cobra.Command {
	var format cli.Format
	command := c.on("outputs", "Show the cluster's endpoints", func(cmd *cobra.Command, on *run.Cluster) error {
		described, err := config.Load(on.Folder)
		if err == nil {
			err = described.Unready()
		}
		if err != nil {
			return err
		}
		return format.Print(cmd, outputs.Of(described))
	})
	format.Add(command)
	return command
}

func (c *clusterFlags) destroy() *cobra.Command {
	var format cli.Format
	var options destroy.Options
	command := c.on("destroy", "Remove the cluster, and make sure that nothing is left", func(cmd *cobra.Command, on *run.Cluster) error {
		result, err := destroy.Execute(cmd.Context(), on, options)
		return printRun(cmd, format, result, err)
	})
	command.Flags().StringVar(&options.Confirm, "confirm", "", "the cluster's name")
	format.Add(command)
	cli.Require(command, "confirm")
	return command
}

func (c *clusterFlags) removeNode() *cobra.Command {
	var format cli.Format
	var options removenode.Options
	command := c.on("remove-node", "Make a node leave that cluster.yaml does not list any more", func(cmd *cobra.Command, on *run.Cluster) error {
		result, err := removenode.Execute(cmd.Context(), on, options)
		return printRun(cmd, format, result, err)
	})
	command.Flags().StringVar(&options.Node, "node", "", "the node, by name")
	command.Flags().StringVar(&options.Confirm, "confirm", "", "the node's name once more")
	command.Flags().DurationVar(&options.DrainTimeout, "drain-timeout", drain.Deadline, "how long its pods may take to go")
	format.Add(command)
	cli.Require(command, "node", "confirm")
	return command
}

func (c *clusterFlags) timeline() *cobra.Command {
	var out string
	command := c.on("timeline", "Copy the last run's time line, events and tools' output", func(_ *cobra.Command, on *run.Cluster) error {
		folder, err := on.LastRun()
		if err != nil {
			return err
		}
		return os.CopyFS(out, os.DirFS(folder))
	})
	command.Flags().StringVar(&out, "out", "", "the folder to write to")
	cli.Require(command, "out")
	return command
}

func (c *clusterFlags) forget() *cobra.Command {
	var world, owner string
	command := cli.Hidden(c.on("forget", "Empty a sandbox's world and its states", func(cmd *cobra.Command, on *run.Cluster) error {
		if err := forget.Execute(cmd.Context(), on, world, owner); err != nil {
			return err
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "the sandbox is empty")
		return err
	}))
	command.Flags().StringVar(&world, "world", "", "the folder that holds the world")
	command.Flags().StringVar(&owner, "owner", "", "the id of the states' owner, as the refused call shows it")
	cli.Require(command, "world")
	return command
}

// sealed prints what is secret under a key that the caller holds in memory, since an engine keeps on disk what a command
// prints.
func (c *clusterFlags) sealed(use, short string, get func(context.Context, *run.Cluster) ([]byte, error)) *cobra.Command {
	return c.on(use, short, func(cmd *cobra.Command, on *run.Cluster) error {
		redact.Add(os.Getenv(sealKeyVariable))
		key, err := base64.StdEncoding.DecodeString(os.Getenv(sealKeyVariable))
		if err != nil || len(key) != 32 {
			return fmt.Errorf("%s must hold 32 bytes in base64: the %s is printed only under a key", sealKeyVariable, use)
		}
		text, err := get(cmd.Context(), on)
		if err != nil {
			return err
		}
		redact.Add(string(text))
		sealed, err := seal(key, text)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), base64.StdEncoding.EncodeToString(sealed))
		return err
	})
}

// seal encrypts with AES-256-GCM; the nonce stands in front.
func seal(key, text []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return aead.Seal(nonce, nonce, text, nil), nil
}
