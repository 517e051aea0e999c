package settings

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/base/filetest"
)

const twoSites = `gitops:
  url: https://github.com/me/gitops.git
  branch: live
registry: {username: me}
sites:
  blog: {path: blog, image: ghcr.io/me/blog, manifest: apps/blog.yaml, port: 8080}
  wiki:
    image: ghcr.io/me/wiki
    tagPrefix: v
    hugo: 0.148.1
    platforms: [linux/amd64, linux/arm64]
    manifest: apps/wiki.yaml
    headers: strict
    afterBuild: [pagefind --site public, "sh scripts/index.sh | sort > public/list.txt"]
`

// mistaken has a mistake of every kind.
const mistaken = `gitops:
  url: https://me:canary-7f3@github.com/me/gitops.git
  brunch: main
sites:
  Blog:
    image: ghcr.io/me/blog:latest
    path: ../elsewhere
    port: 99999
    platforms: [linux/amd64, linux/amd64, windows]
    manifest: /etc/apps
    headers: "defult-src 'self'"
  wiki: {deployment: wiki, resource: wiki, hugo: v0.148.1}
  docs: {hugo: 0.148, afterBuild: [pagefind --site 'public]}
  "a]b.c": {image: me/x:1}
image: me/blog
knownHosts: [git.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDyhSjPwkQiMqZHvvMBWiUbWFnLYuRFDFi7UjhCwqKmT, git.example.org]
clusters: ../clusters
layers: /layers
`

func load(t *testing.T, text string) *File {
	t.Helper()
	f, err := parse(FileName, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFlagsGoBeforeTheClusterBeforeTheFileBeforeDefaults(t *testing.T) {
	file := load(t, twoSites)
	base := Settings{
		Site: "blog", Path: "blog", Image: "ghcr.io/me/blog", TagPrefix: "blog-", Port: 8080, Headers: "fitted", Manifest: "apps/blog.yaml",
		GitOpsURL: "https://github.com/me/gitops.git", GitOpsBranch: "live", AuthorName: "castle", AuthorEmail: "castle@localhost", RegistryUsername: "me",
	}
	with := func(change func(*Settings)) Settings {
		s := base
		change(&s)
		return s
	}
	for title, c := range map[string]struct {
		flags   Settings
		cluster Cluster
		want    Settings
	}{
		"the file's": {Settings{Site: "blog"}, Cluster{}, base},
		"the cluster's": {Settings{Site: "blog"}, Cluster{GitOpsURL: "https://c/x.git", GitOpsBranch: "main", Registry: "192.0.2.1:5000"}, with(func(s *Settings) {
			s.GitOpsURL, s.GitOpsBranch, s.Image = "https://c/x.git", "main", "192.0.2.1:5000/ghcr.io/me/blog"
		})},
		"the cluster's registry is named already": {Settings{Site: "blog"}, Cluster{Registry: "ghcr.io"}, base},
		"a flag for Hugo":                         {Settings{Site: "blog", Hugo: "0.150.0"}, Cluster{}, with(func(s *Settings) { s.Hugo, s.HugoFrom = "0.150.0", "--hugo" })},
		"a flag that is the default of somebody else": {Settings{Site: "blog", GitOpsBranch: "main", Port: 80, Headers: "fitted"}, Cluster{GitOpsBranch: "other"}, with(func(s *Settings) {
			s.GitOpsBranch, s.Port = "main", 80
		})},
		"flags": {Settings{Site: "blog", Image: "x/y", GitOpsURL: "https://f/y.git", Path: ".", AuthorName: "me", PinDigest: true}, Cluster{GitOpsURL: "https://c/x.git", Registry: "r:1"}, with(func(s *Settings) {
			s.Image, s.GitOpsURL, s.Path, s.AuthorName, s.PinDigest = "x/y", "https://f/y.git", ".", "me", true
		})},
		"the other site": {Settings{Site: "wiki"}, Cluster{}, with(func(s *Settings) {
			s.Site, s.Path, s.Image, s.TagPrefix, s.Port, s.Manifest, s.Headers = "wiki", ".", "ghcr.io/me/wiki", "v", 80, "apps/wiki.yaml", "strict"
			s.Hugo, s.HugoFrom = "0.148.1", "castle.yaml"
			s.Platforms = []string{"linux/amd64", "linux/arm64"}
			s.AfterBuild = []string{"pagefind --site public", "sh scripts/index.sh | sort > public/list.txt"}
		})},
	} {
		got, err := Resolve(file, c.flags, c.cluster, ForManifest)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", title, err, got, c.want)
		}
	}
}

func TestWhatNobodyNamesIsToldAtOnceWithBothWaysToNameIt(t *testing.T) {
	for title, c := range map[string]struct {
		file  string
		flags Settings
		need  Need
		want  []string // each a line
	}{
		"nothing is said": {"", Settings{}, ForManifest, []string{
			"nothing names the image: write sites.blog.image in the repository's castle.yaml, or give --image",
			"nothing names the GitOps repository: write gitops.url in the repository's castle.yaml, or give --gitops-url",
			"nothing names the manifest: write sites.blog.manifest in the repository's castle.yaml, or give --manifest-path",
		}},
		"and what is no version": {"", Settings{Hugo: "v0.148"}, ForImage, []string{
			"nothing names the image: write sites.blog.image in the repository's castle.yaml, or give --image",
			`--hugo "v0.148" is not a version of Hugo in three numbers, such as 0.148.1`,
		}},
		"only the image is asked for": {"", Settings{}, ForImage, []string{"nothing names the image: write sites.blog.image in the repository's castle.yaml, or give --image"}},
		"no image is needed":          {"", Settings{}, ForBuild, nil},
		"which of two":                {twoSites, Settings{}, ForBuild, []string{"castle.yaml has several sites: say which with --site (blog, wiki)"}},
		"an unknown one":              {twoSites, Settings{Site: "wick"}, ForBuild, []string{"--site wick: castle.yaml has no site of that name; it has blog, wiki"}},
		"one where there are none":    {"", Settings{Site: "wiki"}, ForBuild, []string{"--site wiki: the repository's castle.yaml names no site; write it there (sites.wiki), or leave --site out and give flags"}},
	} {
		var file *File
		if c.file != "" {
			file = load(t, c.file)
		}
		_, err := Resolve(file, c.flags, Cluster{}, c.need)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if want := strings.Join(c.want, "\n"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", title, got, want)
		}
	}
}

func TestEveryMistakeOfAFileIsALine(t *testing.T) {
	_, err := parse(FileName, []byte(mistaken))
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Fatalf("%v", err)
	}
	want := strings.TrimSpace(`
castle.yaml:2: gitops.url: has credentials in it; remove them, and give the token with --git-token
castle.yaml:3: gitops: unknown field "brunch"; did you mean branch?
castle.yaml:5: sites.Blog: "Blog" is no name for a site; write lower-case letters, digits and inner hyphens
castle.yaml:6: sites.Blog.image: "ghcr.io/me/blog:latest" is not an image's repository without tag or digest, such as ghcr.io/me/blog
castle.yaml:7: sites.Blog.path: "../elsewhere" is no folder of the repository; write it as blog or sites/blog, or . for the root
castle.yaml:8: sites.Blog.port: 99999 is no port; write one from 1 to 65535
castle.yaml:9: sites.Blog.platforms[1]: linux/amd64 stands twice; remove one
castle.yaml:9: sites.Blog.platforms[2]: "windows" is not a platform, such as linux/arm64
castle.yaml:10: sites.Blog.manifest: "/etc/apps" is not a manifest's path in the repository, such as apps/blog/deployment.yaml
castle.yaml:11: sites.Blog.headers: headers "defult-src 'self'": want fitted, strict, off, or the text of a Content-Security-Policy such as "default-src 'self'"
castle.yaml:12: sites.wiki.hugo: "v0.148.1" is not a version of Hugo in three numbers, such as 0.148.1
castle.yaml:12: sites.wiki.resource: "wiki" is not Kind/name, such as Deployment/blog
castle.yaml:12: sites.wiki.deployment: "wiki" is not namespace/name, such as blog/hugo-blog
castle.yaml:13: sites.docs.hugo: "0.148" is not a version of Hugo in three numbers, such as 0.148.1
castle.yaml:13: sites.docs.afterBuild[0]: "pagefind --site 'public" is not a command for a shell (1:17: reached EOF without closing quote '); write it as on a command line: pagefind --site public
castle.yaml:14: sites.a]b.c: "a]b.c" is no name for a site; write lower-case letters, digits and inner hyphens
castle.yaml:14: sites.a]b.c.image: "me/x:1" is not an image's repository without tag or digest, such as ghcr.io/me/blog
castle.yaml:15: unknown field "image"; known are gitops, registry, knownHosts, sites, clusters, layers
castle.yaml:16: knownHosts[1]: is no single line of known_hosts; write it as in: github.com ssh-ed25519 AAAAC3Nz…
castle.yaml:17: clusters: "../clusters" is no folder of the repository; write it as clusters or infrastructure/clusters, or . for the root
castle.yaml:18: layers: "/layers" is no folder of the repository; write it as layers or infrastructure/layers, or . for the root`)
	if err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestThisRepositorysFileIsValidAndFollowsTheSchema(t *testing.T) {
	const root = "../../.."
	file, err := Load(filepath.Join(root, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Resolve(file, Settings{}, Cluster{}, ForManifest); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(filepath.Join(root, FileName))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(root, "castle.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	for text, valid := range map[string]bool{string(data): true, twoSites: true, "sites: {blog: {port: 0}}": false, "sites: {blog: {imge: x}}": false} {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != valid {
			t.Errorf("%v for\n%s", err, text)
		}
	}
}

func TestARepositoryWithoutTheFileSaysNothing(t *testing.T) {
	if file, err := Load(filepath.Join(t.TempDir(), FileName)); file != nil || err != nil {
		t.Errorf("%v, %v", file, err)
	}
}

func TestTheSitesOfARepositoryAreThoseThatItNamesOrTheOneAtItsRoot(t *testing.T) {
	for title, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"two are named":                      {map[string]string{FileName: twoSites, "hugo.toml": ""}, []string{"blog", "wiki"}},
		"none is named, and one is there":    {map[string]string{FileName: "clusters: home", "config/_default/hugo.yaml": ""}, []string{onlySite}},
		"nothing is named":                   {map[string]string{"config.toml": ""}, []string{onlySite}},
		"only clusters":                      {map[string]string{FileName: "clusters: home", "blog/hugo.toml": ""}, []string{}},
		"another program's configuration":    {map[string]string{"config/settings.yaml": ""}, []string{}},
		"a repository without anything here": {nil, []string{}},
	} {
		folder := filetest.New(t, c.files)
		if got, err := Sites(folder); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", title, got, err, c.want)
		}
	}
}

func TestWhatCannotBeServedOrBuiltForIsRefusedWithItsFlag(t *testing.T) {
	for _, c := range []struct {
		flags Settings
		want  string
	}{
		{Settings{Port: 99999}, "--port 99999 is not a port: give one from 1 to 65535"},
		{Settings{Port: -1}, "--port -1 is not a port: give one from 1 to 65535"},
		{Settings{Platforms: []string{"linux/arm64", "sparc"}}, `--platforms "sparc" is not a platform, such as linux/arm64`},
		{Settings{Port: 65535, Platforms: []string{"linux/arm/v7"}}, ""},
	} {
		got := ""
		if _, err := Resolve(nil, c.flags, Cluster{}, ForBuild); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c.flags, got, c.want)
		}
	}
}

func TestASandboxHasAnImageUnderItsOwnRegistry(t *testing.T) {
	const own = "192.168.77.2:5000"
	for image, want := range map[string]string{
		"ghcr.io/me/blog":          own + "/ghcr.io/me/blog",
		"localhost:5000/me/blog":   own + "/localhost/me/blog",
		own + "/me/blog":           own + "/me/blog",
		"blog":                     own + "/blog",
		"registry.lan:443/me/blog": own + "/registry.lan/me/blog",
	} {
		file := load(t, "sites: {blog: {image: '"+image+"'}}")
		s, err := Resolve(file, Settings{}, Cluster{Registry: own}, ForImage)
		if err != nil || s.Image != want {
			t.Errorf("%s: %q, %v, want %q", image, s.Image, err, want)
		}
		if _, err := name.NewRepository(s.Image); err != nil {
			t.Error(err)
		}
	}
}

func TestABaseURLMayHaveAPathButNeitherCredentialsNorAQuery(t *testing.T) {
	for address, valid := range map[string]bool{
		"https://example.org": true, "https://example.org:8443/blog/": true, "https://example.org/@me/~x/": true,
		"https://me:secret@example.org/": false, "/blog/": false, "example.org": false, "https://example.org/?x": false, "https:///blog/": false,
	} {
		_, err := Resolve(nil, Settings{BaseURL: address}, Cluster{}, ForBuild)
		if (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "--base-url") {
			t.Errorf("--base-url %s: %v", address, err)
		}
		file := filepath.Join(filetest.New(t, map[string]string{FileName: "sites: {blog: {baseURL: '" + address + "'}}"}), FileName)
		if _, err := Load(file); (err == nil) != valid {
			t.Errorf("baseURL %s: %v", address, err)
		}
	}
}
