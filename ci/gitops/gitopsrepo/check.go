package gitopsrepo

import (
	"errors"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"filippo.io/age"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/strictyaml"
	"tazlab.net/castle/ci/cluster/config"
)

var (
	hostForm       = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$`)
	imageForm      = regexp.MustCompile(`^([a-z0-9][a-z0-9.-]*(:[0-9]+)?/)?[a-z0-9][a-z0-9._/-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$`)
	ownerForm      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*(/[A-Za-z0-9._-]+)?$`)
	groupForm      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]{0,127}$`)
	bucketForm     = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionForm     = regexp.MustCompile(`^[a-z0-9-]+$`)
	gitProviders   = []string{"github", "gitlab", "gitea", "bitbucket", "generic"}
	alertProviders = []string{"generic", "slack", "discord", "msteams", "rocket", "googlechat"}
)

// checker collects what is wrong with a request. The cluster is nil where its own description has mistakes.
type checker struct {
	Request
	cluster *config.Cluster
	parts   selection
	found   strictyaml.Mistakes
}

func (c *checker) mistake(option, text string) {
	c.found = append(c.found, strictyaml.Mistake{File: "--" + option, Text: text})
}

// check lists every mistake of the options.
func (r Request) check(cluster *config.Cluster) strictyaml.Mistakes {
	c := &checker{Request: r, cluster: cluster, parts: selected(r.With, r.Without)}
	c.names()
	c.hosts()
	c.blog()
	c.address()
	c.volumes()
	c.hostOfGit()
	c.backup()
	c.recipients()
	c.mirror()
	return c.found
}

func (c *checker) names() {
	usual, asked := PartNames()
	for _, list := range []struct {
		option       string
		names, known []string
	}{{"without", c.Without, append(usual, asked...)}, {"with", c.With, asked}} {
		for _, name := range list.names {
			if list.option == "with" && slices.Contains(usual, name) {
				continue // it is there anyway
			}
			if !slices.Contains(list.known, name) {
				c.mistake(list.option, name+" is no part of a repository; "+strictyaml.DidYouMean(name, list.known, "there are "))
			}
		}
	}
	for _, name := range c.With {
		if slices.Contains(c.Without, name) {
			c.mistake("with", name+" is in --without too; write it in one of them")
		}
	}
	for _, p := range parts {
		for _, need := range p.needs {
			if c.parts[p.name] && !c.parts[need] {
				c.mistake("without", p.name+" needs "+need+"; leave "+p.name+" out too (--without "+need+","+p.name+")")
			}
		}
	}
}

func (c *checker) hosts() {
	named := c.parts[Traefik] && (c.parts[Blog] && c.BlogHost == "" || c.parts[Monitoring] || c.parts[Notifications])
	switch {
	case c.Domain == "" && named:
		c.mistake("domain", "is missing; give the domain whose names lead to the cluster, such as example.org")
	case c.Domain != "" && !hostForm.MatchString(c.Domain):
		c.mistake("domain", shown(c.Domain)+" is no domain; write it as example.org, without https:// and without a path")
	}
	if c.BlogHost != "" && !hostForm.MatchString(c.BlogHost) {
		c.mistake("blog-host", shown(c.BlogHost)+" is no host; write it as blog.example.org, without https:// and without a path")
	}
	if c.Issuer != "" && c.Issuer != Staging && c.Issuer != Production {
		c.mistake("acme-issuer", shown(c.Issuer)+" is unknown; write staging to try it out, production for certificates that browsers believe")
	}
	if !c.parts[CertManager] && c.ACMEEmail == "" {
		return
	}
	if address, err := mail.ParseAddress(c.ACMEEmail); c.ACMEEmail == "" {
		c.mistake("acme-email", "is missing; give the address that Let's Encrypt writes to, or leave certificates out (--without cert-manager)")
	} else if err != nil || address.Address != c.ACMEEmail || strings.HasSuffix(c.ACMEEmail, "@example.com") {
		c.mistake("acme-email", shown(c.ACMEEmail)+" is no address that Let's Encrypt takes; write it as me@my.domain")
	}
}

func (c *checker) blog() {
	if c.BlogPort < 0 || c.BlogPort > 65535 {
		c.mistake("blog-port", "is no port; write the one that castle.yaml says, or leave it out for 80")
	}
	repository, tag := splitImage(c.BlogImage)
	switch {
	case !c.parts[Blog] && c.BlogImage == "":
	case c.BlogImage == "":
		c.mistake("blog-image", "is missing; give the image's repository as castle.yaml says it, such as ghcr.io/me/blog, or leave the blog out (--without blog)")
	case !imageForm.MatchString(c.BlogImage):
		c.mistake("blog-image", shown(c.BlogImage)+" is no image; write its repository, such as ghcr.io/me/blog, or with a tag ghcr.io/me/blog:blog-1a2b3c4")
	case tag == "latest":
		c.mistake("blog-image", "latest is another image tomorrow; write "+repository+" alone, and publish-blog sets the tag")
	}
}

func (c *checker) address() {
	if c.cluster == nil {
		return
	}
	address, err := netip.ParseAddr(c.IngressAddress)
	switch {
	case !c.cluster.LoadBalancer.Has() && c.parts[Traefik]:
		c.mistake("without", "cluster.yaml says loadBalancer: none, and nobody would give Traefik its address; leave it out (--without traefik,cert-manager)")
	case !c.cluster.LoadBalancer.Has() && c.IngressAddress != "":
		c.mistake("ingress-address", "cluster.yaml says loadBalancer: none; leave it out")
	case c.IngressAddress == "":
	case err != nil:
		c.mistake("ingress-address", shown(c.IngressAddress)+" is no address; write one of loadBalancer.pool, "+strings.Join(c.cluster.LoadBalancer.Pool, ", "))
	case !slices.ContainsFunc(c.cluster.LoadBalancer.Pool, func(entry string) bool { return poolOf(entry).contains(address) }):
		c.mistake("ingress-address", c.IngressAddress+" is not in loadBalancer.pool, "+strings.Join(c.cluster.LoadBalancer.Pool, ", ")+"; write one that is, or leave it out")
	}
}

// volumes finds the parts that keep something, for which Prometheus and the Dagger engine claim volumes.
func (c *checker) volumes() {
	if c.cluster == nil || c.cluster.Storage.Has() {
		return
	}
	var keep []string
	for _, part := range []string{Monitoring, Dagger} {
		if c.parts[part] {
			keep = append(keep, part)
		}
	}
	if keep != nil {
		c.mistake("without", "cluster.yaml says storage: none, and nobody would give volumes to "+strings.Join(keep, " and ")+"; leave out what needs them (--without "+strings.Join(keep, ",")+")")
	}
}

func (c *checker) hostOfGit() {
	if c.GitProvider != "" && !slices.Contains(gitProviders, c.GitProvider) {
		c.mistake("git-provider", shown(c.GitProvider)+" is unknown; "+strictyaml.DidYouMean(c.GitProvider, gitProviders, "known are "))
	}
	if c.AlertType != "" && !slices.Contains(alertProviders, c.AlertType) {
		c.mistake("alert-type", shown(c.AlertType)+" is unknown; "+strictyaml.DidYouMean(c.AlertType, alertProviders, "known are "))
	}
	if c.Owner != "" && !ownerForm.MatchString(c.Owner) {
		c.mistake("owner", shown(c.Owner)+" is no owner; write an organization of GitHub, or OWNER/REPOSITORY")
	}
	switch {
	case c.RunnerGroup == "":
	case !groupForm.MatchString(c.RunnerGroup):
		c.mistake("runner-group", shown(c.RunnerGroup)+" is no runner group; write its name as the organization's settings show it")
	case strings.Contains(c.Owner, "/"):
		c.mistake("runner-group", "the runners are those of the repository "+c.Owner+", and only an organization has groups; leave it out, or give the organization as --owner")
	}
	if c.parts[ActionsRunners] && c.Owner == "" && c.cluster != nil && providerOf(c.cluster.GitOps.URL) != "github" {
		c.mistake("owner", "is missing: gitops.url is not on github.com; give the organization or OWNER/REPOSITORY whose jobs the runners take")
	}
}

func (c *checker) backup() {
	form := func(option, value string, form *regexp.Regexp, fix string) {
		if value != "" && !form.MatchString(value) {
			c.mistake(option, shown(value)+" is none; "+fix)
		}
	}
	form("backup-bucket", c.BackupBucket, bucketForm, "write 3 to 63 lower-case letters, digits, dots and hyphens")
	form("backup-region", c.BackupRegion, regionForm, "write it as eu-central-1")
	if c.BackupEndpoint != "" && !plainURL(c.BackupEndpoint, "https", "http") {
		c.mistake("backup-endpoint", shown(c.BackupEndpoint)+" is no address of a store; write it as https://s3.example.org, without credentials")
	}
	if !c.parts[EtcdBackup] || c.cluster == nil {
		return
	}
	bucket, endpoint, region := c.store(c.cluster)
	if bucket == "" {
		c.mistake("backup-bucket", "is missing: cluster.yaml keeps its states in no S3 store; give the bucket for etcd's backups, with --backup-endpoint "+
			"(for AWS --backup-region), or leave them out (--without etcd-backup)")
	} else if endpoint == "" && region == "" {
		c.mistake("backup-endpoint", "is missing; give the store's address, or for AWS --backup-region")
	}
}

func (c *checker) recipients() {
	for _, key := range c.AgeRecipients {
		if _, err := age.ParseX25519Recipient(key); err != nil {
			c.mistake("age-recipient", "is no public age key; write age1…, as age-keygen -y prints it") // it may be a private one
		}
	}
	if len(c.AgeRecipients) > 0 || c.cluster == nil {
		return
	}
	if keys, err := recipientsIn(c.Folder, c.cluster.Secrets.SOPS); err != nil {
		c.mistake("age-recipient", err.Error()+"; give the public key that SOPS encrypts for, age1…")
	} else if len(keys) == 0 {
		c.mistake("age-recipient", "is missing: "+strings.Join(c.cluster.Secrets.SOPS, ", ")+" is not there, or names no age key; give the public key that SOPS encrypts for, age1…")
	}
}

func (c *checker) mirror() {
	if c.ChartMirror != "" && !plainURL(c.ChartMirror, "https", "http", "oci") {
		c.mistake("chart-mirror", "is no address of a Helm repository; write it as https://charts.example.org or oci://registry.example.org/charts, without credentials")
	}
}

// shown is what was written, without a password that has got into an address.
func shown(text string) string { return quote(redact.URL(text)) }

// plainURL says whether a text is a URL with a host, of one of the schemes, and without credentials, query and fragment.
func plainURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// join makes one error of the description's mistakes and the options'.
func join(err error, mistakes strictyaml.Mistakes) error {
	if len(mistakes) == 0 {
		return err
	}
	return errors.Join(err, mistakes)
}
