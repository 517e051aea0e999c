package gitopsrepo

import (
	"cmp"
	"net/url"
	"strings"

	"tazlab.net/castle/ci/cluster/config"
)

const (
	// unpublished is the tag of a blog that publish-blog has yet to publish.
	unpublished   = "blog-0000000"
	defaultPort   = 80
	defaultAlerts = "generic"
)

// model is what the template's files are filled with.
type model struct {
	Name, Path, GitURL, Branch, StorageClass, Talos string
	ControlPlane                                    string // the address of one
	Infisical                                       config.Infisical
	SOPS                                            bool

	Domain, ACMEEmail, ClusterIssuer        string
	BlogHost, GrafanaHost, ReceiverHost     string
	BlogImage, BlogRepository, BlogManifest string
	BlogPort                                int
	Published                               bool
	IngressAddress                          string
	AlertType, ReceiverType                 string
	ReceiverEvents                          []string
	Owner, RunnerGroup                      string
	BackupRepository, BackupRegion          string
	Recipients                              string
	Command                                 string

	parts  selection
	pins   pins
	mirror string
}

// newModel fills in what was left out. The request has no mistakes.
func newModel(c *config.Cluster, r Request) (*model, error) {
	pins, err := readPins()
	if err != nil {
		return nil, err
	}
	keys := r.AgeRecipients
	if len(keys) == 0 {
		if keys, err = recipientsIn(r.Folder, c.Secrets.SOPS); err != nil {
			return nil, err
		}
	}
	repository, tag := splitImage(r.BlogImage)
	provider := cmp.Or(r.GitProvider, providerOf(c.GitOps.URL))
	bucket, endpoint, region := r.store(c)
	m := &model{
		Name: c.Name, Path: c.GitOps.Path, GitURL: c.GitOps.URL, Branch: c.GitOps.Branch, StorageClass: c.Storage.StorageClass, Talos: c.Talos.Version,
		ControlPlane: c.ControlPlanes()[0].Address.String(), Infisical: c.Secrets.Infisical, SOPS: !c.Secrets.Infisical.Has(),

		Domain: r.Domain, ACMEEmail: r.ACMEEmail, ClusterIssuer: "letsencrypt-" + cmp.Or(r.Issuer, Staging),
		BlogHost: cmp.Or(r.BlogHost, "blog."+r.Domain), GrafanaHost: "grafana." + r.Domain, ReceiverHost: "flux." + r.Domain,
		BlogImage: repository + ":" + cmp.Or(tag, unpublished), BlogRepository: repository, BlogManifest: "apps/base/hugo-blog/deployment.yaml",
		BlogPort: cmp.Or(r.BlogPort, defaultPort), Published: tag != "",
		IngressAddress: ingressAddress(c, r),
		AlertType:      cmp.Or(r.AlertType, defaultAlerts),
		Owner:          cmp.Or(r.Owner, ownerOf(c.GitOps.URL)), RunnerGroup: r.RunnerGroup,
		Recipients: strings.Join(keys, ","), BackupRepository: resticRepository(bucket, endpoint, region, c.Name), BackupRegion: region,
		Command: r.command(c.Name),

		parts: selected(r.With, r.Without), pins: pins, mirror: r.ChartMirror,
	}
	switch provider {
	case "github", "gitea": // Gitea and Forgejo send GitHub's headers and signature as well
		m.ReceiverType, m.ReceiverEvents = "github", []string{"ping", "push"}
	case "gitlab":
		m.ReceiverType, m.ReceiverEvents = "gitlab", []string{"Push Hook"}
	case "bitbucket":
		m.ReceiverType, m.ReceiverEvents = "bitbucket", []string{"repo:refs_changed"}
	default:
		m.ReceiverType = "generic"
	}
	return m, nil
}

// store is where backups go: what the request says, else the cluster's store of states.
func (r Request) store(c *config.Cluster) (bucket, endpoint, region string) {
	if r.BackupBucket != "" || r.BackupEndpoint != "" || r.BackupRegion != "" {
		return cmp.Or(r.BackupBucket, c.State.S3.Bucket), r.BackupEndpoint, r.BackupRegion
	}
	return c.State.S3.Bucket, c.State.S3.Endpoint, c.State.S3.Region
}

// ingressAddress is what the request asks for, else the last address of the load balancer's first range; a cluster without a load balancer
// has none.
func ingressAddress(c *config.Cluster, r Request) string {
	if !c.LoadBalancer.Has() {
		return ""
	}
	return cmp.Or(r.IngressAddress, poolOf(c.LoadBalancer.Pool[0]).last.String())
}

// resticRepository is an S3 store as restic names it; AWS has an address for each region.
func resticRepository(bucket, endpoint, region, cluster string) string {
	endpoint = cmp.Or(strings.TrimSuffix(endpoint, "/"), "https://s3."+region+".amazonaws.com")
	return "s3:" + endpoint + "/" + bucket + "/etcd/" + cluster
}

// splitImage cuts a tag off an image's name; a port is none.
func splitImage(image string) (repository, tag string) {
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[:i], image[i+1:]
	}
	return image, ""
}

// registryOf is the registry of an image's repository, as Docker names its own in a pull secret.
func registryOf(repository string) string {
	host, _, cut := strings.Cut(repository, "/")
	if !cut || !strings.ContainsAny(host, ".:") && host != "localhost" || host == "docker.io" {
		return "https://index.docker.io/v1/"
	}
	return host
}

// providerOf tells by a repository's address who sends its webhooks; of most hosts it does not.
func providerOf(repository string) string {
	host := hostOf(repository)
	for provider, of := range map[string]string{"github": "github.com", "gitlab": "gitlab.com", "gitea": "codeberg.org", "bitbucket": "bitbucket.org"} {
		if host == of {
			return provider
		}
	}
	return "generic"
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// ownerOf is the first folder of a repository's address.
func ownerOf(repository string) string {
	u, err := url.Parse(repository)
	if err != nil {
		return ""
	}
	owner, _, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	return owner
}
