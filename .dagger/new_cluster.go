package main

import (
	"cmp"
	"context"
	"fmt"
	"path"

	"dagger/castle/internal/dagger"
)

// NewCluster describes a new cluster: a folder with its cluster.yaml, a template
// of its secrets, and a README.md of what only you can provide and what to type
// next. Its addresses, VM ids and names collide with no other cluster of the
// repository. It contacts nobody.
//
// What is not said is taken from the repository's other clusters and from its
// castle.yaml. Where that is not enough, all that is missing is one error.
//
// A sandbox is complete, with secrets of its own: create may follow.
//
// +cache="never"
func (m *Castle) NewCluster(
	ctx context.Context,
	// The cluster's name: that of its folder, its VMs' tag, the beginning of its
	// nodes' names.
	name string,
	// The nodes' subnet, such as 192.168.1.0/24.
	subnet string,
	// The repository that gets a cluster. Default: the one that the module is
	// called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// proxmox, talos for machines that run Talos already, sandbox for the proving
	// ground, or aws, which castle describes and validates and creates nothing on yet.
	// +default="proxmox"
	platform string,
	// 1, 3 or 5.
	// +default=3
	controlPlanes int,
	// On talos they are the machines beyond the control planes, however many.
	// +default=2
	workers int,
	// The subnet's gateway. Default: its first address.
	// +optional
	gateway string,
	// Name servers. Default: the gateway.
	// +optional
	dns []string,
	// Proxmox's API, such as https://192.168.1.10:8006/.
	// +optional
	proxmoxURL string,
	// The SHA-256 fingerprint of Proxmox's certificate. Default: the file
	// pve-root-ca.pem, which you put beside cluster.yaml.
	// +optional
	proxmoxFingerprint string,
	// Proxmox nodes, over which the cluster's nodes are spread.
	// +optional
	host []string,
	// VM id of the Talos template on the first of these Proxmox nodes, 900 by
	// default; those of the others follow it.
	// +optional
	template int,
	// Proxmox's storage for the disks. Default: local-lvm.
	// +optional
	storage string,
	// Proxmox's bridge. Default: vmbr0.
	// +optional
	bridge string,
	// On talos, the address of each machine, which is there in maintenance mode:
	// control planes first.
	// +optional
	machine []string,
	// On talos, the disk that Talos is installed to, such as /dev/nvme0n1, with all
	// that is on it going. cluster.yaml has it for each machine.
	// +optional
	installDisk string,
	// AWS's region, such as eu-central-1. For AWS subnet is the VPC's.
	// +optional
	awsRegion string,
	// Its availability zones, over which the nodes are spread. Default: a, b and c.
	// +optional
	awsZone []string,
	// Where administrators come from, such as 203.0.113.7/32: on AWS nobody else
	// reaches the APIs of Kubernetes and Talos.
	// +optional
	adminCIDR []string,
	// The image of AWS's instances. Default: Sidero Labs' own, which has no
	// extensions, so that the cluster has no storage.
	// +optional
	ami string,
	// The repository that Flux follows, by https.
	// +optional
	gitopsURL string,
	// Its branch. Default: main.
	// +optional
	gitopsBranch string,
	// Infisical's address, or none where all secrets stand in SOPS files. Default:
	// https://eu.infisical.com.
	// +optional
	infisical string,
	// The id of the project there.
	// +optional
	infisicalProject string,
	// Its slug.
	// +optional
	infisicalSlug string,
	// The environment's slug. Default: prod.
	// +optional
	infisicalEnvironment string,
	// The bucket of the layers' states.
	// +optional
	stateBucket string,
	// The address of its store, for any other than AWS.
	// +optional
	stateEndpoint string,
	// The store's region, for AWS.
	// +optional
	stateRegion string,
	// Keep the states in a volume of the engine: for a trial.
	// +optional
	localStates bool,
	// The GitOps repository of the sandbox begins without a commit, for one that you
	// push there. Default: it begins with a blog and what Flux needs to apply it.
	// +optional
	emptyGitops bool,
) (_ *dagger.Changeset, err error) {
	defer ended("new-cluster", FormatText, &err)
	named, err := m.namedFolders(ctx, repository)
	if err != nil {
		return nil, err
	}
	layers := m.layersOf(repository, named.Layers)
	folder := cmp.Or(named.Clusters, defaultClusters)
	there, err := repository.Exists(ctx, folder)
	if err != nil {
		return nil, err
	}
	clusters := dag.Directory()
	if there {
		clusters = repository.Directory(folder)
	}
	args := []string{clusterProgram, "new-cluster", "--clusters=" + path.Join(repositoryMount, folder), "--layers=" + layersMount,
		"--out=" + made, "--folder=" + path.Join(folder, name),
		"--name=" + name, "--platform=" + platform, "--subnet=" + subnet,
		fmt.Sprintf("--control-planes=%d", controlPlanes), fmt.Sprintf("--workers=%d", workers)}
	for _, flag := range []struct{ name, value string }{
		{"gateway", gateway}, {"proxmox-url", proxmoxURL}, {"proxmox-fingerprint", proxmoxFingerprint}, {"storage", storage}, {"bridge", bridge},
		{"install-disk", installDisk}, {"aws-region", awsRegion}, {"ami", ami},
		{"gitops-url", cmp.Or(gitopsURL, named.GitOps.URL)}, {"gitops-branch", cmp.Or(gitopsBranch, named.GitOps.Branch)},
		{"infisical", infisical}, {"infisical-project", infisicalProject}, {"infisical-slug", infisicalSlug}, {"infisical-environment", infisicalEnvironment},
		{"state-bucket", stateBucket}, {"state-endpoint", stateEndpoint}, {"state-region", stateRegion},
	} {
		if flag.value != "" {
			args = append(args, "--"+flag.name+"="+flag.value)
		}
	}
	for flag, values := range map[string][]string{"dns": dns, "host": host, "machine": machine, "aws-zone": awsZone, "admin-cidr": adminCIDR} {
		for _, value := range values {
			args = append(args, "--"+flag+"="+value)
		}
	}
	if template != 0 {
		args = append(args, fmt.Sprintf("--template=%d", template))
	}
	if localStates {
		args = append(args, "--local-states")
	}
	container, err := m.container(clusterProgram)
	if err != nil {
		return nil, err
	}
	described, err := container.
		WithMountedDirectory(path.Join(repositoryMount, folder), clusters).
		WithMountedDirectory(layersMount, layers).
		WithExec(args).
		Directory(path.Join(made, name)).
		Sync(ctx)
	if err != nil {
		return nil, plain(err)
	}
	if platform == "sandbox" {
		if described, err = m.furnished(ctx, name, described, emptyGitops); err != nil {
			return nil, err
		}
	}
	return repository.WithDirectory(path.Join(folder, name), described).Changes(repository), nil
}

// furnished is the folder of a sandbox with secrets, each time others.
func (m *Castle) furnished(ctx context.Context, name string, described *dagger.Directory, emptyGit bool) (*dagger.Directory, error) {
	container, err := m.container(sandboxProgram)
	if err != nil {
		return nil, err
	}
	folder := path.Join(repositoryMount, name)
	furnished, err := uncached(container).
		WithDirectory(folder, described).
		WithExec([]string{sandboxProgram, "furnish", "--cluster=" + folder, fmt.Sprintf("--empty-git=%t", emptyGit)}).
		Directory(folder).
		Sync(ctx)
	return furnished, plain(err)
}
