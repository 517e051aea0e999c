package gitopsrepo

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/golden"
)

// canary is a secret that was written where none belongs.
const canary = "canary7f3a9c1d"

// wrong are requests with mistakes, each by what is wrong with it.
func wrong(t *testing.T) map[string]Request {
	local := []string{"state:\n  backend: s3\n  s3:\n    bucket: tazlab-states\n    endpoint: https://s3.example.com\n", "state:\n  backend: local\n"}
	with := func(change func(*Request), edits ...string) Request {
		request := full(clusterFolder(t, edits...))
		change(&request)
		return request
	}
	return map[string]Request{
		"nothing is given":                 {Folder: clusterFolder(t)},
		"nothing is given, nothing is on":  {Folder: clusterFolder(t), Options: Options{Without: []string{Traefik, CertManager, Blog, Monitoring, Notifications, EtcdBackup, Dagger, Renovate}}},
		"an address instead of a domain":   with(func(r *Request) { r.Domain = "https://example.org/" }),
		"a host with a path":               with(func(r *Request) { r.BlogHost = "example.org/blog" }),
		"no address of a person":           with(func(r *Request) { r.ACMEEmail = "me" }),
		"an example's address":             with(func(r *Request) { r.ACMEEmail = "me@example.com" }),
		"another issuer":                   with(func(r *Request) { r.Issuer = "prod" }),
		"the newest image":                 with(func(r *Request) { r.BlogImage = "ghcr.io/me/blog:latest" }),
		"an image with a scheme":           with(func(r *Request) { r.BlogImage = "https://ghcr.io/me/blog" }),
		"a port that is none":              with(func(r *Request) { r.BlogPort = 70000 }),
		"an address outside of the pool":   with(func(r *Request) { r.IngressAddress = "192.168.1.10" }),
		"an address that is none":          with(func(r *Request) { r.IngressAddress = "blog" }),
		"a part that is mistyped":          with(func(r *Request) { r.Without = []string{"monitorng"} }),
		"a part that is not there":         with(func(r *Request) { r.With = []string{"vault"} }),
		"a part that is asked for and not": with(func(r *Request) { r.With, r.Without = []string{Dagger}, []string{Dagger} }),
		"a part without what it needs":     with(func(r *Request) { r.Without = []string{Traefik} }),
		"another host of Git":              with(func(r *Request) { r.GitProvider = "githb" }),
		"another place for alerts":         with(func(r *Request) { r.AlertType = "mail" }),
		"an owner with a scheme":           with(func(r *Request) { r.Owner = "https://github.com/me" }),
		"a group of a repository":          with(func(r *Request) { r.With, r.Owner, r.RunnerGroup = []string{ActionsRunners}, "me/blog", "cluster" }),
		"a group that is none":             with(func(r *Request) { r.With, r.RunnerGroup = []string{ActionsRunners}, "{{ x }}" }),
		"runners without GitHub":           with(func(r *Request) { r.With = []string{ActionsRunners} }, "https://github.com/", "https://git.example.org/"),
		"no store":                         with(func(*Request) {}, local...),
		"a store without an address":       with(func(r *Request) { r.BackupBucket = "backups" }, local...),
		"a store that is none": with(func(r *Request) {
			r.BackupBucket, r.BackupEndpoint, r.BackupRegion = "B", "s3.example.org", "Frankfurt am Main"
		}),
		"no load balancer and no storage": with(func(*Request) {}, `loadBalancer:
  pool: [192.168.1.220-192.168.1.239]
`, "loadBalancer: none\n", `storage:
  replicas: 2
  dataPath: /var/lib/longhorn
  storageClass: longhorn
`, "storage: none\n"),
		"an address of no load balancer": with(func(r *Request) {
			r.IngressAddress, r.Without = "192.168.1.239", []string{Traefik, CertManager}
		}, `loadBalancer:
  pool: [192.168.1.220-192.168.1.239]
`, "loadBalancer: none\n"),
		"no key of SOPS":                   with(func(*Request) {}, "sops: secrets.sops.yaml", "sops: other.sops.yaml"),
		"a private key":                    with(func(r *Request) { r.AgeRecipients = []string{"AGE-SECRET-KEY-" + canary} }),
		"a mirror with a password":         with(func(r *Request) { r.ChartMirror = "https://me:" + canary + "@charts.example.org" }),
		"a store with a password":          with(func(r *Request) { r.BackupBucket, r.BackupEndpoint = "backups", "https://me:"+canary+"@s3.example.org" }),
		"an image with a password":         with(func(r *Request) { r.BlogImage = "https://me:" + canary + "@ghcr.io/me/blog" }),
		"a mirror without a scheme":        with(func(r *Request) { r.ChartMirror = "charts.example.org" }),
		"a description with mistakes, too": with(func(r *Request) { r.Domain, r.BlogImage = "", "" }, "platform: proxmox", "platform: vmware", "replicas: 2", "replicas: 0"),
	}
}

func TestMistakesAreToldAllAtOnceEachWithItsFix(t *testing.T) {
	requests := wrong(t)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		files, err := Render(requests[name])
		fmt.Fprintf(&text, "%s\n", name)
		if err == nil {
			fmt.Fprintf(&text, "\tis fine\n")
			continue
		}
		if files != nil {
			t.Errorf("%s: files were made", name)
		}
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(&text, "\t%s\n", strings.TrimSpace(strings.ReplaceAll(line, requests[name].Folder+string(filepath.Separator), "")))
		}
	}
	if strings.Contains(text.String(), canary) {
		t.Error("a password is shown")
	}
	golden.Match(t, "testdata/mistakes.txt", text.String())
}

func TestTheTree(t *testing.T) {
	everything := full(clusterFolder(t))
	everything.With = []string{ActionsRunners}
	bySOPS := full(clusterFolder(t, withoutInfisical()...))
	little := full(clusterFolder(t))
	little.Without = []string{CertManager, PullSecret, Monitoring, Notifications, EtcdBackup, Dagger, Renovate}
	for name, request := range map[string]Request{"everything": everything, "sops": bySOPS, "little": little} {
		golden.Match(t, "testdata/tree-"+name+".txt", strings.Join(rendered(t, request).Paths(), "\n")+"\n")
	}
}

// What a person reads first, and the one file that speaks of everything.
func TestTheReadme(t *testing.T) {
	everything := full(clusterFolder(t))
	everything.With = []string{ActionsRunners}
	golden.Match(t, "testdata/readme-everything.md", string(rendered(t, everything)["README.md"]))
	golden.Match(t, "testdata/readme-sops.md", string(rendered(t, full(clusterFolder(t, withoutInfisical()...)))["README.md"]))
}

func TestWhatIsLeftOutIsTakenFromTheDescription(t *testing.T) {
	files := rendered(t, full(clusterFolder(t)))
	for name, want := range map[string]string{
		"infrastructure/controllers/traefik/release.yaml":               "metallb.io/loadBalancerIPs: 192.168.1.239\n", // the last of the pool
		"infrastructure/controllers/monitoring/prometheus/release.yaml": "storageClass: longhorn\n",
		"infrastructure/controllers/dagger/release.yaml":                "storageClassName: longhorn\n",
		"infrastructure/configs/etcd-backup/cronjob.yaml":               `"s3:https://s3.example.com/tazlab-states/etcd/green"`,
		"infrastructure/configs/notifications/receiver.yaml":            "type: github\n",
		"clusters/green/apps.yaml":                                      "wait: false\n", // no tag, no image, no pod
		"apps/base/hugo-blog/deployment.yaml":                           `"ghcr.io/me/blog:blog-0000000"`,
		"apps/overlays/green/hugo-blog/ingress.yaml":                    "host: blog.example.org\n",
		".sops.yaml": recipient,
	} {
		if !strings.Contains(string(files[name]), want) {
			t.Errorf("%s has no %s", name, want)
		}
	}
	published := full(clusterFolder(t))
	published.BlogImage += ":blog-1a2b3c4"
	if apps := rendered(t, published)["clusters/green/apps.yaml"]; !strings.Contains(string(apps), "wait: true\n") {
		t.Errorf("a published blog is not waited for:\n%s", apps)
	}
	if !strings.Contains(string(files["infrastructure/configs/etcd-backup/cronjob.yaml"]), "ghcr.io/siderolabs/talosctl:v1.13.9") {
		t.Error("the backup's talosctl is not of the cluster's Talos")
	}
}

func TestARegistryIsNamedAsPullSecretsNameIt(t *testing.T) {
	for repository, want := range map[string]string{
		"ghcr.io/me/blog": "ghcr.io", "localhost:5000/me/blog": "localhost:5000", "localhost/blog": "localhost",
		"docker.io/me/blog": "https://index.docker.io/v1/", "me/blog": "https://index.docker.io/v1/", "nginx": "https://index.docker.io/v1/",
	} {
		if got := registryOf(repository); got != want {
			t.Errorf("%s is in %s, not in %s", repository, got, want)
		}
	}
}
