package main

import (
	"cmp"
	"context"
	"fmt"

	"dagger/castle/internal/dagger"
)

// GitopsRepo is the whole GitOps repository of a cluster, as Flux applies it:
// Traefik, certificates, the blog, monitoring, notifications, backups of etcd, a
// Dagger engine. Nothing is looked up, so the same call gives the same files.
// Export it, look at it, and make it yours:
// `dagger call gitops-repo --cluster blue --domain example.org --acme-email me@example.org --blog-image ghcr.io/me/blog export --path ../cluster`.
//
// Its README says what is where, and what only you can give.
func (m *Castle) GitopsRepo(
	ctx context.Context,
	// The cluster: a folder with a cluster.yaml in the clusters' folder.
	cluster string,
	// The domain whose names lead to the cluster, such as example.org.
	// +optional
	domain string,
	// Whom Let's Encrypt writes to.
	// +optional
	acmeEmail string,
	// staging, or production for certificates that browsers believe.
	// +default="staging"
	acmeIssuer string,
	// The blog's image, or with a tag that is published already. Default: what the
	// repository's castle.yaml names, for a sandbox in its own registry.
	// +optional
	blogImage string,
	// The blog's host. Default: blog. and the domain.
	// +optional
	blogHost string,
	// The port that the blog's container listens on. Default: what castle.yaml says,
	// else 80.
	// +optional
	blogPort int,
	// Traefik's address. Default: the last of the load balancer's first range.
	// +optional
	ingressAddress string,
	// Whose webhook calls Flux: github, gitlab, gitea, bitbucket or generic.
	// Default: by the host of gitops.url.
	// +optional
	gitProvider string,
	// Whom Flux tells of failures: generic, slack, discord, msteams, rocket or
	// googlechat.
	// +default="generic"
	alertType string,
	// Whose jobs the runners of GitHub Actions take: an organization, or
	// OWNER/REPOSITORY. Default: the owner of gitops.url.
	// +optional
	owner string,
	// The organization's runner group that they join, whose settings say which
	// repositories may use them. Default: GitHub's group Default.
	// +optional
	runnerGroup string,
	// The bucket of etcd's backups. Default: that of the states.
	// +optional
	backupBucket string,
	// The address of that bucket's store.
	// +optional
	backupEndpoint string,
	// The region of that bucket, for AWS.
	// +optional
	backupRegion string,
	// The public key (age1…) that SOPS encrypts for; several times. Default: those
	// of the cluster's SOPS file.
	// +optional
	ageRecipient []string,
	// Where all charts come from (https://… or oci://…) instead of each from its
	// own repository.
	// +optional
	chartMirror string,
	// Parts to leave out: traefik, cert-manager, blog, pull-secret, monitoring,
	// notifications, etcd-backup, dagger, renovate.
	// +optional
	without []string,
	// Parts to add: actions-runners.
	// +optional
	with []string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
) (_ *dagger.Directory, err error) {
	defer ended("gitops-repo", FormatText, &err)
	c := m.Cluster(cluster, repository, nil, "", nil)
	d, _, err := c.locate(ctx)
	if err != nil {
		return nil, err
	}
	blogImage, blogPort = c.blog(ctx, blogImage, blogPort)
	container, args, err := d.gitopsRepo(
		repositoryFlags(domain, acmeEmail, acmeIssuer, blogImage, blogHost, blogPort, ingressAddress, gitProvider, alertType, owner, runnerGroup,
			backupBucket, backupEndpoint, backupRegion, chartMirror), ageRecipient, without, with)
	if err != nil {
		return nil, err
	}
	folder, err := container.WithExec(append(args, "--out="+made)).Directory(made).Sync(ctx)
	return folder, plain(err)
}

// GitopsRepoPush makes the repository that gitops-repo renders the first commit
// of an empty remote. One that has any branch or tag is refused.
//
// +cache="never"
func (m *Castle) GitopsRepoPush(
	ctx context.Context,
	// The cluster: a folder with a cluster.yaml in the clusters' folder.
	cluster string,
	// The commit's author.
	authorName string,
	// The author's address.
	authorEmail string,
	// The domain whose names lead to the cluster, such as example.org.
	// +optional
	domain string,
	// Whom Let's Encrypt writes to.
	// +optional
	acmeEmail string,
	// staging, or production for certificates that browsers believe.
	// +default="staging"
	acmeIssuer string,
	// The blog's image, or with a tag that is published already. Default: what the
	// repository's castle.yaml names, for a sandbox in its own registry.
	// +optional
	blogImage string,
	// The blog's host. Default: blog. and the domain.
	// +optional
	blogHost string,
	// The port that the blog's container listens on. Default: what castle.yaml says,
	// else 80.
	// +optional
	blogPort int,
	// Traefik's address. Default: the last of the load balancer's first range.
	// +optional
	ingressAddress string,
	// Whose webhook calls Flux: github, gitlab, gitea, bitbucket or generic.
	// Default: by the host of gitops.url.
	// +optional
	gitProvider string,
	// Whom Flux tells of failures: generic, slack, discord, msteams, rocket or
	// googlechat.
	// +default="generic"
	alertType string,
	// Whose jobs the runners of GitHub Actions take: an organization, or
	// OWNER/REPOSITORY. Default: the owner of gitops.url.
	// +optional
	owner string,
	// The organization's runner group that they join, whose settings say which
	// repositories may use them. Default: GitHub's group Default.
	// +optional
	runnerGroup string,
	// The bucket of etcd's backups. Default: that of the states.
	// +optional
	backupBucket string,
	// The address of that bucket's store.
	// +optional
	backupEndpoint string,
	// The region of that bucket, for AWS.
	// +optional
	backupRegion string,
	// The public key (age1…) that SOPS encrypts for; several times. Default: those
	// of the cluster's SOPS file.
	// +optional
	ageRecipient []string,
	// Where all charts come from (https://… or oci://…) instead of each from its
	// own repository.
	// +optional
	chartMirror string,
	// Parts to leave out: traefik, cert-manager, blog, pull-secret, monitoring,
	// notifications, etcd-backup, dagger, renovate.
	// +optional
	without []string,
	// Parts to add: actions-runners.
	// +optional
	with []string,
	// The empty remote, by https, ssh, or http without a token. Default: gitops.url of cluster.yaml,
	// for a sandbox its own Git server.
	// +optional
	url string,
	// The branch. Default: gitops.branch of cluster.yaml.
	// +optional
	branch string,
	// The token for the remote over https.
	// +optional
	gitToken *dagger.Secret,
	// The SSH agent's socket, for a remote over ssh (--ssh-agent "$SSH_AUTH_SOCK").
	// +optional
	sshAgent *dagger.Socket,
	// The known_hosts file for ssh.
	// +optional
	knownHosts *dagger.File,
	// The remote as a service, where only this machine reaches it.
	// +optional
	gitopsService *dagger.Service,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// How much of a homelab's time the sandbox takes: 1 is real time, 0 none.
	// +default="0.05"
	timeScale string,
) (_ string, err error) {
	defer ended("gitops-repo-push", FormatText, &err)
	c := m.Cluster(cluster, repository, nil, timeScale, nil)
	d, err := c.describe(ctx)
	if err != nil {
		return "", err
	}
	blogImage, blogPort = c.blog(ctx, blogImage, blogPort)
	container, args, err := d.gitopsRepo(
		repositoryFlags(domain, acmeEmail, acmeIssuer, blogImage, blogHost, blogPort, ingressAddress, gitProvider, alertType, owner, runnerGroup,
			backupBucket, backupEndpoint, backupRegion, chartMirror), ageRecipient, without, with)
	if err != nil {
		return "", err
	}
	world, err := d.ownWorld(ctx)
	if err != nil {
		return "", err
	}
	if world != nil && url == "" {
		enter, err := d.enter(ctx)
		if err != nil {
			return "", err
		}
		container = container.With(enter)
	}
	plainHTTP := ""
	if url == "" {
		url, gitToken = d.remote(world, gitToken)
		if plainHTTP, err = plainHostOf(url, world); err != nil {
			return "", err
		}
	}
	args = append(args, given(flag{"push", url}, flag{"branch", branch}, flag{"author-name", authorName}, flag{"author-email", authorEmail})...)
	access := gitAccess{token: gitToken, sshAgent: sshAgent, knownHosts: knownHosts, plainHTTP: plainHTTP}
	container, flags := access.attach(container)
	args = append(args, flags...)
	if gitopsService != nil {
		host, err := hostOfURL(url)
		if err != nil {
			return "", err
		}
		var forward []string
		if container, forward, err = reach(container, host, "gitops-service", gitopsService); err != nil {
			return "", err
		}
		args = append(append(args, forward...), "--git-plain-http="+host)
	}
	text, err := uncached(container).WithExec(args).Stdout(ctx)
	return text, plain(err)
}

// blog is the image and the port that castle.yaml of the cluster's repository has for its site, where the call names no image. Nothing
// comes of what it does not say, and of a description with mistakes: castle-gitops tells what is missing together with all else.
func (c *Cluster) blog(ctx context.Context, image string, port int) (string, int) {
	if image != "" {
		return image, port
	}
	d, err := c.describe(ctx)
	if err != nil {
		return "", port
	}
	g, err := (&Site{Castle: c.Castle, Source: c.Repository}).goal(ctx, forImage, d)
	if err != nil {
		return "", port
	}
	return g.Image, cmp.Or(port, g.Port)
}

// repositoryFlags are those of castle-gitops for what both functions take.
func repositoryFlags(domain, acmeEmail, acmeIssuer, blogImage, blogHost string, blogPort int, ingressAddress, gitProvider, alertType, owner, runnerGroup,
	backupBucket, backupEndpoint, backupRegion, chartMirror string) []string {
	flags := given(
		flag{"domain", domain}, flag{"acme-email", acmeEmail}, flag{"acme-issuer", acmeIssuer},
		flag{"blog-image", blogImage}, flag{"blog-host", blogHost},
		flag{"ingress-address", ingressAddress}, flag{"git-provider", gitProvider}, flag{"alert-type", alertType}, flag{"owner", owner},
		flag{"runner-group", runnerGroup},
		flag{"backup-bucket", backupBucket}, flag{"backup-endpoint", backupEndpoint}, flag{"backup-region", backupRegion},
		flag{"chart-mirror", chartMirror},
	)
	if blogPort != 0 {
		flags = append(flags, fmt.Sprintf("--blog-port=%d", blogPort))
	}
	return flags
}

// gitopsRepo is the container that renders, with the cluster's folder, and the
// command without where the result goes.
func (d *described) gitopsRepo(flags, ageRecipient, without, with []string) (*dagger.Container, []string, error) {
	container, err := d.castle.container(gitopsProgram)
	if err != nil {
		return nil, nil, err
	}
	args := append([]string{gitopsProgram, "repo", "--folder=" + d.folder}, flags...)
	for _, list := range []struct {
		flag   string
		values []string
	}{{"age-recipient", ageRecipient}, {"without", without}, {"with", with}} {
		for _, value := range list.values {
			args = append(args, "--"+list.flag+"="+value)
		}
	}
	return container.With(d.mounted), args, nil
}
