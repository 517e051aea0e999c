package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"

	"golang.org/x/crypto/ssh"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/strictyaml"
	"tazlab.net/castle/ci/publish/site/hugobuild"
	"tazlab.net/castle/ci/publish/site/hugoversion"
	"tazlab.net/castle/ci/publish/site/siteheaders"
)

// FileName is castle.yaml's, at the root of the user's repository.
const FileName = "castle.yaml"

// File is what castle.yaml says. All of it may be left out, and given by flags instead.
type File struct {
	// The repository that Flux follows.
	GitOps GitOps `json:"gitops"`
	// How to get into the images' registry. The password comes by --registry-password.
	Registry Registry `json:"registry"`
	// The keys of the Git hosts that are reached by ssh, as lines of known_hosts. ssh-keyscan prints them; compare what it
	// prints with the fingerprint that the host's operator publishes.
	KnownHosts []string `json:"knownHosts"`
	// The sites of this repository, by the name that --site takes.
	Sites map[string]Site `json:"sites"`
	// The folder that holds a folder with a cluster.yaml for each cluster. The Dagger module reads it.
	Clusters string `json:"clusters"`
	// The folder with layers of the repository's own, as `dagger call eject` writes it. Left out, it is the folder layers, where
	// there is one; else the layers are those that come with castle.
	Layers string `json:"layers"`
}

// GitOps is the repository that Flux follows.
type GitOps struct {
	// Its address, by https, ssh or http, without credentials.
	URL string `json:"url"`
	// The branch that Flux follows.
	Branch string `json:"branch"`
	// The author of the commits that castle makes in it.
	Author Author `json:"author"`
	// Open a pull request on GitHub instead of pushing to the branch, as --pull-request does.
	PullRequest bool `json:"pullRequest"`
	// The address of GitHub's API, where the repository is on a GitHub of one's own.
	GitHubAPI string `json:"githubAPI"`
}

// Author is the author of a commit.
type Author struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Registry is how to get into the images' registry.
type Registry struct {
	// The user name.
	Username string `json:"username"`
}

// Site is a Hugo site, the image that serves it, and the place that names the image.
type Site struct {
	// The site's folder in the repository; "." for its root.
	Path string `json:"path"`
	// The image's repository, such as ghcr.io/me/blog.
	Image string `json:"image"`
	// What stands before the commit's SHA in the image's tag. Default: the site's name and a hyphen.
	TagPrefix string `json:"tagPrefix"`
	// The version of Hugo that builds the site, such as 0.148.1, with the digest of its image behind @ where castle has none of it. Default:
	// what the repository names elsewhere, else castle's own.
	Hugo string `json:"hugo"`
	// The platforms to publish for, as one index. Default: the engine's own.
	Platforms []string `json:"platforms"`
	// The port that nginx listens on. From 1024 on the image runs as any user.
	Port int `json:"port"`
	// The base URL, where it differs from the one in Hugo's configuration.
	BaseURL string `json:"baseURL"`
	// The security headers: fitted to what the built pages use, strict, off, or the text of a Content-Security-Policy.
	Headers string `json:"headers"`
	// The manifest's path in the GitOps repository.
	Manifest string `json:"manifest"`
	// The container whose image is meant, where several of the manifest use the same one.
	Container string `json:"container"`
	// The resource that is meant (Kind/name), where several of the manifest use the same image.
	Resource string `json:"resource"`
	// The Deployment that --wait waits for (namespace/name), where kustomize gives it another name than the manifest.
	Deployment string `json:"deployment"`
	// Write the digest beside the tag, so that the manifest names these very bytes.
	PinDigest bool `json:"pinDigest"`
	// Commands that run once Hugo has built the site, such as pagefind --site public: in the site's folder, by a shell, with the programs
	// of its npm packages, without a network.
	AfterBuild []string `json:"afterBuild"`
}

// baseURLForm is that of a site's address; its path may have an @, as in /@me/.
var baseURLForm = regexp.MustCompile(`^https?://[^/@?#]+(/[^?#]*)?$`)

var facts = strictyaml.Facts{
	"gitops":              {Optional: true},
	"gitops.url":          {Optional: true},
	"gitops.branch":       {Default: "main"},
	"gitops.author":       {Optional: true},
	"gitops.author.name":  {Default: "castle"},
	"gitops.author.email": {Default: "castle@localhost"},
	"gitops.pullRequest":  {Default: false},
	"gitops.githubAPI":    {Optional: true, Form: regexp.MustCompile(`^https://[^@?#]+$`), What: "the URL of an API without credentials, such as https://github.example.org/api/v3/"},
	"registry":            {Optional: true},
	"registry.username":   {Optional: true},
	"knownHosts":          {Optional: true},
	"sites":               {Optional: true},
	"clusters":            {Default: "clusters"},
	"layers":              {Optional: true},
	"sites[].path":        {Default: "."},
	"sites[].image":       {Optional: true, Form: regexp.MustCompile(`^([a-z0-9][a-z0-9.-]*(:[0-9]+)?/)?[a-z0-9][a-z0-9._/-]*$`), What: "an image's repository without tag or digest, such as ghcr.io/me/blog"},
	"sites[].tagPrefix":   {Optional: true, Form: regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,80}$`), What: "the beginning of a tag, such as blog-"},
	"sites[].hugo":        {Optional: true, Form: hugoversion.Asked, What: hugoversion.What},
	"sites[].platforms":   {Optional: true, Distinct: true},
	"sites[].platforms[]": {Form: regexp.MustCompile(`^linux/[a-z0-9]+(/v[0-9]+)?$`), What: "a platform, such as linux/arm64"},
	"sites[].port":        {Default: 80, Least: 1, Most: 65535},
	"sites[].baseURL":     {Optional: true, Form: baseURLForm, What: "a full URL without credentials and query, such as https://example.org/blog/"},
	"sites[].headers":     {Default: "fitted"},
	"sites[].manifest":    {Optional: true, Form: regexp.MustCompile(`^[^/].*\.(ya?ml|json)$`), What: "a manifest's path in the repository, such as apps/blog/deployment.yaml"},
	"sites[].container":   {Optional: true},
	"sites[].resource":    {Optional: true, Form: regexp.MustCompile(`^[A-Za-z]+/[^/]+(/[^/]+)?$`), What: "Kind/name, such as Deployment/blog"},
	"sites[].deployment":  {Optional: true, Form: regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9.-]+$`), What: "namespace/name, such as blog/hugo-blog"},
	"sites[].pinDigest":   {Default: false},
	"sites[].afterBuild":  {Optional: true},
}

var grammar = strictyaml.Schema{Facts: facts}

var siteName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Load reads castle.yaml in a folder; where there is none, it says nothing. One with mistakes gives them all at once, as
// strictyaml.Mistakes.
func Load(file string) (*File, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", FileName, err)
	}
	return parse(FileName, data)
}

func parse(name string, data []byte) (*File, error) {
	f := &File{}
	r, err := strictyaml.Decode(name, data, f, grammar, "speaks of one repository", "leave it out, or name a site in it")
	if err != nil {
		return nil, err
	}
	f.check(r)
	if mistakes := r.Mistakes(place); mistakes != nil {
		return nil, mistakes
	}
	return f, nil
}

var entry = regexp.MustCompile(`^sites\[([^\]]*)\]`)

// place names a field as castle.yaml has it: "sites.blog.image:".
func place(path string) string {
	if path == "" {
		return ""
	}
	if parts := entry.FindStringSubmatch(path); parts != nil {
		path = "sites." + strictyaml.EntryName(parts[1]) + path[len(parts[0]):]
	}
	return path + ":"
}

func (f *File) check(r *strictyaml.Reader) {
	if f.GitOps.URL != "" && git.HasPassword(f.GitOps.URL) {
		r.Mistake("gitops.url", "has credentials in it; remove them, and give the token with --git-token")
	}
	if f.GitOps.Branch != "" {
		if err := git.CheckBranch(f.GitOps.Branch); err != nil {
			r.Mistake("gitops.branch", "%v", err)
		}
	}
	if at := "gitops.githubAPI"; r.Has(at) && !facts.Of(at).Form.MatchString(f.GitOps.GitHubAPI) {
		r.Mistake(at, "%q is not %s", redact.URL(f.GitOps.GitHubAPI), facts.Of(at).What)
	}
	for i, line := range f.KnownHosts {
		if _, _, _, _, rest, err := ssh.ParseKnownHosts([]byte(line)); err != nil || len(rest) > 0 {
			r.Mistake(fmt.Sprintf("knownHosts[%d]", i), "is no single line of known_hosts; write it as in: github.com ssh-ed25519 AAAAC3Nz…")
		}
	}
	for name, folder := range map[string]string{"clusters": f.Clusters, "layers": f.Layers} {
		if r.Has(name) && !fs.ValidPath(folder) {
			r.Mistake(name, "%q is no folder of the repository; write it as %s or infrastructure/%s, or . for the root", folder, name, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Sites)) {
		path := strictyaml.Entry("sites", name)
		if !siteName.MatchString(name) {
			r.Mistake(path, "%q is no name for a site; write lower-case letters, digits and inner hyphens", name)
		}
		f.Sites[name].check(r, path)
	}
}

func (s Site) check(r *strictyaml.Reader, path string) {
	form := func(field, value string) {
		at := path + "." + field
		if fact := facts.Of(at); r.Has(at) && !fact.Form.MatchString(value) {
			r.Mistake(at, "%q is not %s", value, fact.What)
		}
	}
	form("image", s.Image)
	form("tagPrefix", s.TagPrefix)
	form("hugo", s.Hugo)
	for i, platform := range s.Platforms {
		form(fmt.Sprintf("platforms[%d]", i), platform)
		if first := slices.Index(s.Platforms, platform); first < i {
			r.Mistake(fmt.Sprintf("%s.platforms[%d]", path, i), "%s stands twice; remove one", platform)
		}
	}
	form("baseURL", s.BaseURL)
	form("manifest", s.Manifest)
	form("resource", s.Resource)
	form("deployment", s.Deployment)
	if at := path + ".port"; r.Has(at) && (s.Port < facts.Of(at).Least || s.Port > facts.Of(at).Most) {
		r.Mistake(at, "%d is no port; write one from 1 to 65535", s.Port)
	}
	if at := path + ".path"; r.Has(at) && !fs.ValidPath(s.Path) {
		r.Mistake(at, "%q is no folder of the repository; write it as blog or sites/blog, or . for the root", s.Path)
	}
	for i, command := range s.AfterBuild {
		if err := hugobuild.CheckAfter(command); err != nil {
			r.Mistake(fmt.Sprintf("%s.afterBuild[%d]", path, i), "%v; write it as on a command line: pagefind --site public", err)
		}
	}
	if at := path + ".headers"; r.Has(at) {
		if _, err := siteheaders.Parse(s.Headers); err != nil {
			r.Mistake(at, "%v", err)
		}
	}
}
