package gitopsrepo

import (
	"slices"
	"strings"
)

// Parts of a repository that can be left out.
const (
	Traefik        = "traefik"
	CertManager    = "cert-manager"
	Blog           = "blog"
	PullSecret     = "pull-secret"
	Monitoring     = "monitoring"
	Notifications  = "notifications"
	EtcdBackup     = "etcd-backup"
	Dagger         = "dagger"
	ActionsRunners = "actions-runners"
	Renovate       = "renovate"
)

// part is something that a repository can do without.
type part struct {
	name  string
	what  string   // for the help and the README
	asked bool     // left out unless it is asked for
	needs []string // parts without which this one does nothing
	paths []string // files and folders of the template that are there for this part
}

// parts in the order in which the README speaks of them.
var parts = []part{
	{name: Traefik, what: "the way in: 80 and 443 of one address, http redirected to https", paths: []string{
		"clusters/NAME/traefik.yaml", "infrastructure/namespaces/traefik.yaml", "infrastructure/controllers/traefik", "apps/overlays/NAME/hugo-blog/ingress.yaml",
		"infrastructure/configs/notifications/ingress.yaml",
	}},
	{name: CertManager, what: "certificates of Let's Encrypt, proven over HTTP", needs: []string{Traefik}, paths: []string{
		"clusters/NAME/cert-manager.yaml", "clusters/NAME/issuers.yaml", "infrastructure/namespaces/cert-manager.yaml",
		"infrastructure/controllers/cert-manager", "infrastructure/configs/issuers",
	}},
	{name: Blog, what: "the blog that publish-blog publishes", paths: []string{"clusters/NAME/apps.yaml", "infrastructure/namespaces/blog.yaml", "apps"}},
	{name: PullSecret, what: "the password for the blog's registry; without it the image has to be public", needs: []string{Blog}},
	{name: Monitoring, what: "Prometheus and Grafana, small, and on nothing's way", paths: []string{
		"clusters/NAME/monitoring.yaml", "infrastructure/namespaces/monitoring.yaml", "infrastructure/controllers/monitoring",
	}},
	{name: Notifications, what: "Flux tells of what failed, and is told of each push", paths: []string{
		"clusters/NAME/notifications.yaml", "infrastructure/configs/notifications",
	}},
	{name: EtcdBackup, what: "an encrypted snapshot of etcd each night, in S3", paths: []string{
		"clusters/NAME/etcd-backup.yaml", "infrastructure/namespaces/etcd-backup.yaml", "infrastructure/configs/etcd-backup",
	}},
	{name: Dagger, what: "a Dagger engine whose cache stays", paths: []string{
		"clusters/NAME/dagger.yaml", "infrastructure/namespaces/dagger.yaml", "infrastructure/controllers/dagger",
	}},
	{name: ActionsRunners, what: "runners of GitHub Actions that come and go with the jobs", asked: true, paths: []string{
		"clusters/NAME/actions-runner-controller.yaml", "clusters/NAME/actions-runners.yaml", "infrastructure/namespaces/actions-runners.yaml",
		"infrastructure/controllers/actions-runner-controller", "infrastructure/configs/actions-runners",
	}},
	{name: Renovate, what: "newer charts and images as pull requests", paths: []string{"renovate.json"}},
}

// bySOPS are the files that are there where no Infisical is.
var bySOPS = []string{"clusters/NAME/secrets.yaml", "secrets"}

// externalSecret is the name of each file of the template that asks Infisical.
const externalSecret = "external-secret.yaml"

// PartNames are those that can be left out, and those that have to be asked for.
func PartNames() (usual, asked []string) {
	for _, p := range parts {
		if p.asked {
			asked = append(asked, p.name)
		} else {
			usual = append(usual, p.name)
		}
	}
	return usual, asked
}

// selection is which parts a repository has, by name.
type selection map[string]bool

func selected(with, without []string) selection {
	s := selection{}
	for _, p := range parts {
		s[p.name] = (!p.asked || slices.Contains(with, p.name)) && !slices.Contains(without, p.name)
	}
	s[PullSecret] = s[PullSecret] && s[Blog]
	return s
}

// has says whether a repository with this selection has a file or folder of the template.
func (s selection) has(name string, infisical bool) bool {
	if infisical && under(name, bySOPS) || !infisical && strings.HasSuffix(name, "/"+externalSecret) {
		return false
	}
	if name == "apps/overlays/NAME/hugo-blog/"+externalSecret && !s[PullSecret] {
		return false
	}
	for _, p := range parts {
		if !s[p.name] && under(name, p.paths) {
			return false
		}
	}
	return true
}

// under says whether a path is one of the folders, or below one.
func under(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") })
}
