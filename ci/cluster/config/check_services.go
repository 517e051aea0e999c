package config

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scpForm is a Git repository's address in the short form for SSH, "git@host:owner/repository.git".
var scpForm = regexp.MustCompile(`^[A-Za-z0-9._-]+@([A-Za-z0-9.-]+):(.+)$`)

func (k *checker) proxmox() {
	p := k.c.Proxmox
	if u := k.web("proxmox.url", p.URL, false); u != nil && strings.Trim(u.Path, "/") != "" {
		k.Mistake("proxmox.url", "%s has a path; did you mean %s://%s/?", p.URL, u.Scheme, u.Host)
	}
	k.certificate()
	k.templates()
	k.form("proxmox.storage", p.Storage, "the name of a storage, such as local-lvm")
	k.form("proxmox.bridge", p.Bridge, "the name of a bridge, such as vmbr0")
	if k.Has("proxmox.vlan") && (p.VLAN < 1 || p.VLAN > lastVLAN) {
		k.Mistake("proxmox.vlan", "%d is no VLAN tag; write 1 to %d, or remove it for none", p.VLAN, lastVLAN)
	}
}

func (k *checker) storage() {
	s := k.c.Storage
	nodes, are := len(k.c.PodNodes()), "workers"
	if len(k.c.Workers()) == 0 {
		are = "control planes, which take pods where there are no workers"
	}
	switch {
	case !k.Has("storage.replicas"):
	case s.Replicas < 1:
		k.Mistake("storage.replicas", "%d keeps no copy at all; write at least 1", s.Replicas)
	case k.rolesKnown() && nodes > 0 && s.Replicas > nodes:
		k.Mistake("storage.replicas", "%d is more than the number of %s, and each keeps one copy; write %d or add workers", s.Replicas, are, nodes)
	}
	if k.Has("storage.dataPath") && (!strings.HasPrefix(s.DataPath, "/var/") || path.Clean(s.DataPath) != s.DataPath) {
		k.Mistake("storage.dataPath", "%q is not a folder below /var, the only place that Talos keeps; write /var/lib/longhorn", s.DataPath)
	}
	k.dataDisks()
	k.dnsLabel("storage.storageClass", s.StorageClass)
}

func (k *checker) gitops() {
	g := k.c.GitOps
	if match := scpForm.FindStringSubmatch(g.URL); match != nil {
		k.Mistake("gitops.url", "is reached by SSH, but Flux signs in with a user name and a token; did you mean https://%s/%s?", match[1], match[2])
	} else if u := k.web("gitops.url", g.URL, false); u != nil && strings.Trim(u.Path, "/") == "" {
		k.Mistake("gitops.url", "%s names no repository; write it as https://host/owner/tazlab-k8s.git", g.URL)
	}
	if k.Has("gitops.branch") && (!facts.Of("gitops.branch").Form.MatchString(g.Branch) || strings.Contains(g.Branch, "..") || strings.Contains(g.Branch, "//")) {
		k.Mistake("gitops.branch", "%q is not the name of a branch, such as main", g.Branch)
	}
	k.inside("gitops.path", g.Path, "clusters/blue")
	k.word("gitops.tenancy", g.Tenancy)
}

// inside checks a path that must stay below the folder it is relative to, and says whether it does.
func (k *checker) inside(field, value, example string) bool {
	if !k.Has(field) {
		return false
	}
	clean := strings.TrimLeft(path.Clean(value), "/")
	switch {
	case value == "" || clean == "." || clean == "" || clean == ".." || strings.HasPrefix(clean, "../"):
		k.Mistake(field, "%q does not name something below its folder; write for example %s", value, example)
	case clean != value:
		k.Mistake(field, "%q is not a plain relative path; did you mean %s?", value, clean)
	default:
		return true
	}
	return false
}

func (k *checker) secrets() {
	k.files("secrets.sops", k.c.Secrets.SOPS)
	k.files("secrets.plan", k.c.Secrets.Plan)
	i := k.c.Secrets.Infisical
	// The proving ground's Infisical has no certificate; a real one would receive the client's secret in clear.
	if u := k.web("secrets.infisical.url", i.URL, k.c.Platform == PlatformSandbox); u != nil && strings.HasSuffix(u.Path, "/api") {
		k.Mistake("secrets.infisical.url", "%s ends in /api, which is added by itself; did you mean %s?", i.URL, strings.TrimSuffix(i.URL, "/api"))
	}
	k.form("secrets.infisical.project", i.Project, "a project's id; copy the UUID from the project's settings")
	k.form("secrets.infisical.slug", i.Slug, "a project's slug, which is lower-case words joined by hyphens")
	k.form("secrets.infisical.environment", i.Environment, "an environment's slug, such as prod")
	k.infisicalFolder("secrets.infisical.path", i.Path)
	k.infisicalFolder("secrets.infisical.fluxPath", i.FluxPath)
	k.infisicalFolder("secrets.infisical.workloadsPath", i.WorkloadsPath)
	if k.Broken("secrets.infisical") || !k.Has("secrets.infisical.path") {
		return
	}
	for field, folder := range map[string]string{"fluxPath": i.FluxPath, "workloadsPath": i.WorkloadsPath} {
		if holds(folder, i.Path) {
			k.Mistake("secrets.infisical."+field, "%s is path, or holds it, and what reads it is in the cluster: no identity there may read the cluster's PKI; "+
				"write a folder of its own, such as %s", folder, path.Join(i.Path, strings.TrimSuffix(field, "Path")))
		}
	}
	if holds(i.WorkloadsPath, i.FluxPath) || holds(i.FluxPath, i.WorkloadsPath) {
		k.Mistake("secrets.infisical.workloadsPath", "%s and fluxPath %s are in each other, and what workloads ask for must not open the GitOps repository; "+
			"write folders that stand beside each other", i.WorkloadsPath, i.FluxPath)
	}
	if k.Has("secrets.infisical.namespaces") && len(i.Namespaces) == 0 {
		k.empty("secrets.infisical.namespaces")
	}
	for n, name := range i.Namespaces {
		k.form(fmt.Sprintf("secrets.infisical.namespaces[%d]", n), name, "the name of a namespace, such as blog")
	}
}

// infisicalFolder checks the path of a folder in Infisical.
func (k *checker) infisicalFolder(field, folder string) {
	if k.Has(field) && (!strings.HasPrefix(folder, "/") || path.Clean(folder) != folder) {
		k.Mistake(field, "%q is not a folder of Infisical; did you mean %s?", folder, path.Clean("/"+folder))
	}
}

// holds tells whether a folder of Infisical is another one, or above it.
func holds(folder, other string) bool {
	return folder == other || strings.HasPrefix(other, strings.TrimSuffix(folder, "/")+"/")
}

// files checks the names of the SOPS files in a field, and that none of them is in clear.
func (k *checker) files(field string, names []string) {
	if k.Has(field) && len(names) == 0 {
		k.empty(field)
	}
	seen := map[string]bool{}
	for i, name := range names {
		at := field // where it is not a list
		if item := fmt.Sprintf("%s[%d]", field, i); len(names) > 1 || k.Has(item) || k.Broken(item) {
			at = item
		}
		k.inside(at, name, "secrets.sops.yaml")
		switch extension := path.Ext(name); {
		case !k.Has(at):
		case !slices.Contains([]string{".yaml", ".yml", ".json"}, extension):
			k.Mistake(at, "%q is neither .yaml nor .json; name a SOPS file of one of these", name)
		case seen[name]:
			k.Mistake(at, "%s is in the list twice; remove one", name)
		default:
			k.encrypted(at, name)
		}
		seen[name] = true
	}
}

// encrypted refuses a file of secrets that SOPS has not encrypted. Nothing is gone on with then: each further step would make
// more copies of it. One that is not there, or that cannot be read as YAML, is told of when its secrets are wanted.
func (k *checker) encrypted(field, name string) {
	if !k.Has(field) || !filepath.IsLocal(name) {
		return
	}
	data, err := os.ReadFile(filepath.Join(k.beside, name))
	var document map[string]any
	if err != nil || yaml.Unmarshal(data, &document) != nil || len(document) == 0 {
		return
	}
	if _, has := document["sops"]; !has {
		k.Mistake(field, "%s is not encrypted; encrypt it with \"sops encrypt --in-place --age age1… %s\", and then change every secret "+
			"in it: it is in the cache of the engine that was called, and in Git if it was ever committed", name, name)
	}
}

func (k *checker) state() {
	s := k.c.State
	k.word("state.backend", s.Backend)
	switch s.Backend {
	case StateLocal:
		if k.Has("state.s3") {
			k.Mistake("state.s3", "is not used by the backend local; remove it, or write backend: s3")
		}
		return
	case StateS3:
	default:
		return
	}
	switch {
	case !k.Has("state.s3.bucket") && !k.Broken("state.s3.bucket"):
		k.Mistake("state.s3", "bucket is missing; the backend s3 keeps the states there")
	default:
		k.form("state.s3.bucket", s.S3.Bucket, "a bucket's name: 3 to 63 lower-case letters, digits, dots and hyphens")
	}
	if !k.Has("state.s3.endpoint") && !k.Has("state.s3.region") {
		k.Mistake("state.s3", "endpoint and region are missing; write the region for AWS itself, the endpoint for any other store")
	}
	if s.S3.Endpoint != "" {
		k.web("state.s3.endpoint", s.S3.Endpoint, true) // requests are signed and states encrypted
	}
}
