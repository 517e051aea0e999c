package gitopsrepo

import (
	"tazlab.net/castle/ci/cluster/config"
)

// Issuers of certificates.
const (
	Staging    = "staging"
	Production = "production"
)

// Options are what a repository is made of beside the cluster's description.
type Options struct {
	Domain    string // such as example.org
	ACMEEmail string // whom Let's Encrypt writes to
	Issuer    string // Staging or Production; "" is Staging

	BlogImage string // its repository, or with the tag that is published already
	BlogHost  string // "" is blog. and the domain
	BlogPort  int    // that its container listens on; 0 is 80, as publish-blog's

	IngressAddress string // of the load balancer's pool; "" is the last of it
	GitProvider    string // whose webhook calls Flux; "" is by the host of gitops.url
	AlertType      string // whom Flux tells; "" is generic
	Owner          string // of the runners: an organization or OWNER/REPOSITORY; "" is that of gitops.url
	RunnerGroup    string // of an organization, whose settings say which repositories may use it; "" is GitHub's default

	BackupBucket, BackupEndpoint, BackupRegion string // of the backups; "" is the store of the states

	AgeRecipients []string // public keys for SOPS; none are those of the cluster's SOPS file
	ChartMirror   string   // where all charts come from, https://… or oci://…; "" is where each is published

	With, Without []string // parts
}

// Request is a cluster, and how its repository is to be.
type Request struct {
	// Folder is the cluster's, with its cluster.yaml and the SOPS files that this names.
	Folder string
	Options
}

// Render makes the repository's files, by their paths. The same request gives the same bytes. What is wrong with the request
// is one error with a line for each mistake.
func Render(request Request) (Files, error) {
	cluster, err := config.Load(request.Folder)
	mistakes := request.check(cluster)
	if joined := join(err, mistakes); joined != nil {
		return nil, joined
	}
	m, err := newModel(cluster, request)
	if err != nil {
		return nil, err
	}
	return m.render()
}
