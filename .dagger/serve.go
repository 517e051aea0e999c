package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"

	"dagger/castle/internal/dagger"
)

// PreviewBlog builds the blog as publish-blog would and serves that very image,
// without pushing anything. Look at it with
// `dagger call preview-blog up --ports 8080:8080`.
//
// The second number of --ports is always --port: with another one nothing
// answers, and Dagger prints "unknown connID" for each request. Links go to
// http://localhost:8080, at the path that the site is published at, unless
// another base URL is given, as is needed with another first number. It is not
// cached, so that each call shows the port.
//
// +cache="never"
func (m *Castle) PreviewBlog(
	ctx context.Context,
	// The blog's Git working tree (a path), or a Git URL with a ref.
	// +defaultPath="/"
	source *dagger.Directory,
	// The site's name in castle.yaml. Default: the only one.
	// +optional
	site string,
	// The Hugo site's folder in the source; "." for its root.
	// +optional
	path string,
	// The version of Hugo, such as 0.148.1. Default: what the repository names,
	// else castle's own.
	// +optional
	hugo string,
	// The base URL to build for. Default: http://localhost:8080 with the path of
	// the site's own base URL, which castle.yaml or Hugo's configuration has.
	// +optional
	baseUrl string,
	// The port that nginx listens on.
	// +default=8080
	port int,
	// Show the working tree as it is, uncommitted changes included.
	// +optional
	dirty bool,
	// The security headers: fitted to what the built pages use, strict (nothing
	// from elsewhere, nothing inline), off, or the text of a
	// Content-Security-Policy.
	// +optional
	headers string,
) (*dagger.Service, error) {
	s := m.siteToBuild(source, toBuild{site, path, hugo, baseUrl, headers})
	s.Given = append(s.Given, given(flag{"port", strconv.Itoa(port)})...)
	at, err := s.settings(ctx, forBuild)
	if err != nil {
		return nil, err
	}
	blog := blog{castle: m, source: source, path: at.Path, headers: at.Headers, baseURL: at.BaseURL,
		asked: at.hugo(), after: at.AfterBuild, use: toLook, timer: newTimer()}
	export, err := blog.export(ctx, dirty)
	if err != nil {
		return nil, plain(err)
	}
	if baseUrl == "" {
		blog.baseURL = localAddress(cmp.Or(at.BaseURL, export.BaseURL))
	}
	output, err := blog.hugo(ctx, export)
	if err != nil {
		return nil, plain(err)
	}
	built, err := blog.image(ctx, export, output.public, serving{port: port})
	if err != nil {
		return nil, plain(err)
	}
	sayPorts(ctx, port, blog.baseURL)
	return m.serveLayout(built.layout(), port)
}

// localPort is the port of this machine that a service is mapped to.
const localPort = "8080"

// localAddress is where a site is looked at on this machine: at the path of its
// base URL.
func localAddress(baseURL string) string {
	local := &url.URL{Scheme: "http", Host: "localhost:" + localPort}
	if at, err := url.Parse(baseURL); err == nil {
		local = local.JoinPath(at.EscapedPath())
	}
	return local.JoinPath("/").String()
}

// sayPorts shows which port to map and what to open, as a step of its own:
// Dagger accepts any other port, too, and fails only once a browser asks.
func sayPorts(ctx context.Context, port int, baseURL string) {
	open, err := url.Parse(localAddress(baseURL))
	if err != nil {
		return
	}
	if at, err := url.Parse(baseURL); err == nil && at.Port() != "" {
		open.Host = "localhost:" + at.Port()
	}
	_, done := shown(ctx, fmt.Sprintf("nginx listens on port %d: map it with up --ports %s:%[1]d, and open %[3]s", port, open.Port(), open), true)
	done(nil)
}

// serveLayout starts the image of an OCI layout.
func (m *Castle) serveLayout(layout *dagger.Directory, port int) (*dagger.Service, error) {
	base, err := m.container(publishProgram)
	if err != nil {
		return nil, err
	}
	archive := base.
		WithMountedDirectory("/image", layout).
		WithExec([]string{publishProgram, "archive", "--layout=/image", "--out=" + made + ".tar"}).
		File(made + ".tar")
	return serve(archive, port), nil
}

// ServeBlog serves a published image, pulled from its registry:
// `dagger call serve-blog --tag blog-1a2b3c4 up --ports 8080:80`.
//
// +cache="never"
func (m *Castle) ServeBlog(
	ctx context.Context,
	// The image's tag, or its digest (sha256:…).
	tag string,
	// The repository whose castle.yaml names the image.
	// +defaultPath="/"
	// +ignore=["*", "!castle.yaml"]
	source *dagger.Directory,
	// The site's name in castle.yaml. Default: the only one.
	// +optional
	site string,
	// The image's repository.
	// +optional
	image string,
	// The user name for the registry.
	// +optional
	registryUsername string,
	// The password or token for the registry.
	// +optional
	registryPassword *dagger.Secret,
	// The registry as a service, where only this machine reaches it
	// (tcp://localhost:5000).
	// +optional
	registryService *dagger.Service,
	// The port that the image's nginx listens on.
	// +default=80
	port int,
	// A sandbox whose own registry has the image: a folder of the clusters' folder.
	// +optional
	cluster string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in. Left out
	// of it: Go files, and folders named testdata, content, themes, static or
	// assets, which belong to sites.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig", "**/*.go", "**/testdata", "**/content", "**/themes", "**/static", "**/assets"]
	repository *dagger.Directory,
	// The age key of a sandbox that does not bring its own.
	// +optional
	ageKey *dagger.Secret,
	// How much of a homelab's time the sandbox takes.
	// +default="0.05"
	timeScale string,
) (*dagger.Service, error) {
	s := &Site{
		Castle: m, Source: source, RegistryPassword: registryPassword, RegistryService: registryService,
		Given: given(flag{"site", site}, flag{"image", image}, flag{"registry-username", registryUsername}, flag{"port", strconv.Itoa(port)}),
	}
	r := rollout{castle: m, cluster: m.optionalCluster(cluster, repository, ageKey, timeScale)}
	if err := r.describe(ctx); err != nil {
		return nil, err
	}
	g, err := s.goal(ctx, forImage, r.described)
	if err != nil {
		return nil, err
	}
	enter, err := r.enterSandbox(ctx)
	if err != nil {
		return nil, err
	}
	base, err := m.container(publishProgram)
	if err != nil {
		return nil, err
	}
	puller, flags, err := s.registry(g.settings).attach(base.With(enter))
	if err != nil {
		return nil, err
	}
	args := []string{publishProgram, "pull", "--image=" + g.Image, "--tag=" + tag, "--out=" + made + ".tar"}
	archive, err := uncached(puller).
		WithExec(append(append(args, flags...), g.flags()...)).
		File(made + ".tar").
		Sync(ctx)
	if err != nil {
		return nil, plain(err)
	}
	sayPorts(ctx, port, localAddress(g.BaseURL))
	return serve(archive, port), nil
}

// serve starts an image from its archive.
func serve(archive *dagger.File, port int) *dagger.Service {
	return dag.Container().
		Import(archive).
		WithExposedPort(port).
		AsService(dagger.ContainerAsServiceOpts{UseEntrypoint: true})
}

// registry is where an image is, and how to get in.
type registry struct {
	image, username string
	password        *dagger.Secret
	service         *dagger.Service
	retryFor        string // how long a step that fails is tried again; empty: as castle-publish has it
}

// attach gives a container the way to the registry and returns it with the
// flags for its commands.
func (r registry) attach(container *dagger.Container) (*dagger.Container, []string, error) {
	flags := given(flag{"retry-for", r.retryFor})
	if (r.password == nil) != (r.username == "") {
		return nil, nil, fmt.Errorf("the registry of %s needs both --registry-username and --registry-password, or neither", r.image)
	}
	if r.password != nil {
		container = container.WithSecretVariable("CASTLE_REGISTRY_PASSWORD", r.password)
		flags = append(flags, "--registry-username="+r.username)
	}
	if r.service != nil {
		bound, forward, err := reach(container, hostOfImage(r.image), "registry-service", r.service)
		if err != nil {
			return nil, nil, err
		}
		// A service that a user tunnels to is a registry without certificates.
		container, flags = bound, append(append(flags, forward...), "--plain-http="+hostOfImage(r.image))
	}
	return container, flags, nil
}
