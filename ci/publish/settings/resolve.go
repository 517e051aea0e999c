package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
	"tazlab.net/castle/ci/publish/site/hugoversion"
)

// Cluster is what the description of the named cluster says. It goes before castle.yaml, since it is what that cluster's
// Flux follows, and after flags.
type Cluster struct {
	GitOpsURL, GitOpsBranch string
	// Registry stands before the image of castle.yaml: a sandbox's own.
	Registry string
}

// Need is what a call cannot do without.
type Need string

const (
	// ForBuild wants the site only.
	ForBuild Need = "build"
	// ForImage wants the image as well.
	ForImage Need = "image"
	// ForManifest wants the place that names the image, too.
	ForManifest Need = "manifest"
)

// Settings are a site's: complete, as the steps of a call take them, or what a call gives itself, where castle.yaml says what
// is left empty.
type Settings struct {
	Site       string   `json:"site"`
	Path       string   `json:"path"`
	Image      string   `json:"image"`
	TagPrefix  string   `json:"tagPrefix"`
	Hugo       string   `json:"hugo"`     // empty: what the site's own files say
	HugoFrom   string   `json:"hugoFrom"` // who says it
	Platforms  []string `json:"platforms"`
	Port       int      `json:"port"`
	BaseURL    string   `json:"baseURL"`
	Headers    string   `json:"headers"`
	Manifest   string   `json:"manifest"`
	Container  string   `json:"container"`
	Resource   string   `json:"resource"`
	Deployment string   `json:"deployment"`
	PinDigest  bool     `json:"pinDigest"`
	AfterBuild []string `json:"afterBuild"` // castle.yaml's: no flag says it

	GitOpsURL    string `json:"gitopsURL"`
	GitOpsBranch string `json:"gitopsBranch"`
	AuthorName   string `json:"authorName"`
	AuthorEmail  string `json:"authorEmail"`
	PullRequest  bool   `json:"pullRequest"`
	GitHubAPI    string `json:"githubAPI"`

	RegistryUsername string `json:"registryUsername"`

	KnownHosts []string `json:"knownHosts"`
}

// onlySite is the name of a site that castle.yaml does not name, where flags say all.
const onlySite = "blog"

// Resolve puts together what is said. File is nil where the repository has no castle.yaml. The error names everything that
// is needed and nobody said, one line each.
func Resolve(file *File, flags Settings, cluster Cluster, need Need) (Settings, error) {
	name, site, err := file.pick(flags.Site)
	if err != nil {
		return Settings{}, err
	}
	var f File
	if file != nil {
		f = *file
	}
	s := Settings{
		Site:       name,
		Path:       cmp.Or(flags.Path, site.Path, facts["sites[].path"].Default.(string)),
		Image:      cmp.Or(flags.Image, imageIn(cluster.Registry, site.Image)),
		TagPrefix:  cmp.Or(flags.TagPrefix, site.TagPrefix, name+"-"),
		Hugo:       cmp.Or(flags.Hugo, site.Hugo),
		Platforms:  site.Platforms,
		Port:       cmp.Or(flags.Port, site.Port, facts["sites[].port"].Default.(int)),
		BaseURL:    cmp.Or(flags.BaseURL, site.BaseURL),
		Headers:    cmp.Or(flags.Headers, site.Headers, facts["sites[].headers"].Default.(string)),
		Manifest:   cmp.Or(flags.Manifest, site.Manifest),
		Container:  cmp.Or(flags.Container, site.Container),
		Resource:   cmp.Or(flags.Resource, site.Resource),
		Deployment: cmp.Or(flags.Deployment, site.Deployment),
		PinDigest:  flags.PinDigest || site.PinDigest,
		AfterBuild: site.AfterBuild,

		GitOpsURL:    cmp.Or(flags.GitOpsURL, cluster.GitOpsURL, f.GitOps.URL),
		GitOpsBranch: cmp.Or(flags.GitOpsBranch, cluster.GitOpsBranch, f.GitOps.Branch, facts["gitops.branch"].Default.(string)),
		AuthorName:   cmp.Or(flags.AuthorName, f.GitOps.Author.Name, facts["gitops.author.name"].Default.(string)),
		AuthorEmail:  cmp.Or(flags.AuthorEmail, f.GitOps.Author.Email, facts["gitops.author.email"].Default.(string)),

		RegistryUsername: cmp.Or(flags.RegistryUsername, f.Registry.Username),

		KnownHosts: f.KnownHosts,
	}
	// What castle.yaml says of its own repository is not true of another one, such as a sandbox's.
	named := f.GitOps.URL != "" && s.GitOpsURL == f.GitOps.URL
	s.PullRequest = flags.PullRequest || f.GitOps.PullRequest && named
	s.GitHubAPI = flags.GitHubAPI
	if named {
		s.GitHubAPI = cmp.Or(flags.GitHubAPI, f.GitOps.GitHubAPI)
	}
	if len(flags.Platforms) > 0 {
		s.Platforms = flags.Platforms
	}
	switch {
	case flags.Hugo != "":
		s.HugoFrom = "--hugo"
	case site.Hugo != "":
		s.HugoFrom = FileName
	}
	return s, errors.Join(s.missing(need), checkFlags(flags))
}

// imageIn is the name that an image of castle.yaml has in a sandbox's registry. Only the first part of a name may have a port.
func imageIn(registry, image string) string {
	if registry == "" || image == "" || strings.HasPrefix(image, registry+"/") {
		return image
	}
	host, rest, _ := strings.Cut(image, "/")
	host, _, _ = strings.Cut(host, ":")
	return path.Join(registry, host, rest)
}

// checkFlags finds what is wrong with flags that a later step would only stumble over.
func checkFlags(flags Settings) error {
	if fact := facts["sites[].port"]; flags.Port != 0 && (flags.Port < fact.Least || flags.Port > fact.Most) {
		return fmt.Errorf("--port %d is not a port: give one from %d to %d", flags.Port, fact.Least, fact.Most)
	}
	for _, platform := range flags.Platforms {
		if fact := facts["sites[].platforms[]"]; !fact.Form.MatchString(platform) {
			return fmt.Errorf("--platforms %q is not %s", platform, fact.What)
		}
	}
	if flags.Hugo != "" && !hugoversion.Asked.MatchString(flags.Hugo) {
		return fmt.Errorf("--hugo %q is not %s", flags.Hugo, hugoversion.What)
	}
	if fact := facts["sites[].baseURL"]; flags.BaseURL != "" && !fact.Form.MatchString(flags.BaseURL) {
		return fmt.Errorf("--base-url %q is not %s", flags.BaseURL, fact.What)
	}
	return nil
}

// Sites are the names of the sites that a repository has: those of its castle.yaml, and where that names none, the one whose
// configuration of Hugo is at the root.
func Sites(folder string) ([]string, error) {
	file, err := Load(filepath.Join(folder, FileName))
	if err != nil {
		return nil, err
	}
	if file != nil && len(file.Sites) > 0 {
		return file.names(), nil
	}
	found, err := hugoconfig.FilesFS(os.DirFS(folder))
	if err != nil || len(found) == 0 {
		return []string{}, err
	}
	return []string{onlySite}, nil
}

func (f *File) names() []string { return slices.Sorted(maps.Keys(f.Sites)) }

// pick finds the site that is meant.
func (f *File) pick(name string) (string, Site, error) {
	if f == nil || len(f.Sites) == 0 {
		if name != "" {
			return "", Site{}, fmt.Errorf("--site %s: the repository's %s names no site; write it there (sites.%s), or leave --site out and give flags", name, FileName, name)
		}
		return onlySite, Site{}, nil
	}
	names := f.names()
	if name == "" {
		if len(names) > 1 {
			return "", Site{}, fmt.Errorf("%s has several sites: say which with --site (%s)", FileName, strings.Join(names, ", "))
		}
		name = names[0]
	}
	site, known := f.Sites[name]
	if !known {
		return "", Site{}, fmt.Errorf("--site %s: %s has no site of that name; it has %s", name, FileName, strings.Join(names, ", "))
	}
	return name, site, nil
}

// missing names what a call cannot do without.
func (s Settings) missing(need Need) error {
	var problems []error
	for _, field := range []struct{ value, what, key, flag string }{
		{s.Image, "the image", "sites." + s.Site + ".image", "--image"},
		{s.GitOpsURL, "the GitOps repository", "gitops.url", "--gitops-url"},
		{s.Manifest, "the manifest", "sites." + s.Site + ".manifest", "--manifest-path"},
	} {
		if field.value == "" && (need == ForManifest || need == ForImage && field.flag == "--image") {
			problems = append(problems, fmt.Errorf("nothing names %s: write %s in the repository's %s, or give %s", field.what, field.key, FileName, field.flag))
		}
	}
	return errors.Join(problems...)
}
