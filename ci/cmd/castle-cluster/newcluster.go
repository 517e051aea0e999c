package main

import (
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/newcluster"
	"tazlab.net/castle/ci/cmd/cli"
)

func newNewClusterCommand() *cobra.Command {
	var o newcluster.Options
	var clusters, layers, out, folder string
	command := cli.Hidden(&cobra.Command{
		Use:   "new-cluster",
		Short: "Describe a new cluster, which collides with no other of the repository",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return newcluster.Execute(clusters, layers, out, folder, o)
		},
	})
	flags := command.Flags()
	flags.StringVar(&clusters, "clusters", "", "the folder with a folder for each cluster")
	flags.StringVar(&layers, "layers", "terragrunt", "the folder with the layers, and their templates")
	flags.StringVar(&out, "out", "", "the folder that the new cluster's folder is written to")
	flags.StringVar(&folder, "folder", "", "the new folder's path in the repository")
	flags.StringVar(&o.Name, "name", "", "the cluster's name")
	flags.StringVar(&o.Platform, "platform", config.PlatformProxmox, "proxmox, talos, sandbox or aws")
	flags.StringVar(&o.Subnet, "subnet", "", "the nodes' subnet")
	flags.StringVar(&o.Gateway, "gateway", "", "its gateway; default: its first address")
	flags.StringSliceVar(&o.DNS, "dns", nil, "name servers; default: the gateway")
	flags.IntVar(&o.ControlPlanes, "control-planes", 3, "1, 3 or 5")
	flags.IntVar(&o.Workers, "workers", 2, "0 or more; on talos they are the machines beyond the control planes")
	flags.StringVar(&o.ProxmoxURL, "proxmox-url", "", "Proxmox's API")
	flags.StringVar(&o.Fingerprint, "proxmox-fingerprint", "", "its certificate's SHA-256 fingerprint")
	flags.StringSliceVar(&o.Hosts, "host", nil, "a Proxmox node; several times")
	flags.IntVar(&o.Template, "template", 0, "VM id of the Talos template on the first of these; those of the others follow it")
	flags.StringVar(&o.Storage, "storage", "", "Proxmox's storage for the disks")
	flags.StringVar(&o.Bridge, "bridge", "", "Proxmox's bridge")
	flags.StringSliceVar(&o.Machines, "machine", nil, "the address of a machine that runs Talos already; several times, control planes first")
	flags.StringVar(&o.InstallDisk, "install-disk", "", "the disk that Talos is installed to on each of these")
	flags.StringVar(&o.AWSRegion, "aws-region", "", "AWS's region")
	flags.StringSliceVar(&o.Zones, "aws-zone", nil, "an availability zone; several times; default: the first three")
	flags.StringSliceVar(&o.AdminCIDRs, "admin-cidr", nil, "where administrators come from; several times")
	flags.StringVar(&o.AMI, "ami", "", "the image of the instances; default: Sidero Labs' own, which has no extensions")
	flags.StringVar(&o.GitOpsURL, "gitops-url", "", "the repository that Flux follows")
	flags.StringVar(&o.Branch, "gitops-branch", "", "its branch")
	flags.StringVar(&o.Infisical, "infisical", "", "Infisical's address, or none")
	flags.StringVar(&o.Project, "infisical-project", "", "the project's id")
	flags.StringVar(&o.Slug, "infisical-slug", "", "the project's slug")
	flags.StringVar(&o.Environment, "infisical-environment", "", "the environment's slug")
	flags.StringVar(&o.Bucket, "state-bucket", "", "the bucket of the states")
	flags.StringVar(&o.Endpoint, "state-endpoint", "", "the store's address")
	flags.StringVar(&o.Region, "state-region", "", "the store's region, for AWS")
	flags.BoolVar(&o.LocalStates, "local-states", false, "keep the states in a volume of the engine")
	cli.Require(command, "clusters", "out", "folder")
	return command
}
