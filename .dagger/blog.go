package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"dagger/castle/internal/dagger"
)

// Folders of the containers below. What a step makes it leaves in made.
const (
	made       = "/made"
	cacheMount = "/var/cache/castle"
)

// blog is a commit of the blog on its way to an image.
type blog struct {
	castle  *Castle
	source  *dagger.Directory
	path    string
	headers string   // that the image is to send
	baseURL string   // to build for and to serve at; empty: as the site itself says
	after   []string // commands that run on what Hugo built
	asked   hugoVersion
	use     use
	timer   *timer
	// retryFor is how long a download that fails is tried again; empty: as castle-publish has it.
	retryFor string
	// beside runs while an exported commit is built; nil: nothing does.
	beside func(context.Context, *exported) error
}

// use is what a blog is built for. What builds leave in caches is kept apart by
// it and by the site, since they run code of the site's: neither a check of
// somebody's pull request nor another site may leave anything that a later
// publish puts on the web.
type use string

const (
	toPublish use = "publish"
	toLook    use = "look"
)

// cached mounts what earlier builds of the same site left, for the same use.
// castle-publish says which site it is (worktree.CacheKey).
func (b blog) cached(export *exported, name string) dagger.WithContainerFunc {
	return func(container *dagger.Container) *dagger.Container {
		if export.Cache == "" {
			return container
		}
		return container.WithMountedCache(cacheMount, dag.CacheVolume("castle-"+string(b.use)+"-"+name+"-"+export.Cache))
	}
}

// commit is what the later steps need to know of commit.json, which `castle-publish
// export` prints.
type commit struct {
	SHA string `json:"sha"`
	// Source is the remote, empty for one on the user's own machine.
	Source   string `json:"source"`
	Detached bool   `json:"detached"`
	// Site is the site's path in the exported folder.
	Site string `json:"site"`
	// BaseURL is that of the site's configuration.
	BaseURL string `json:"baseURL"`
	// Hugo is the version that builds the site.
	Hugo hugoVersion `json:"hugo"`
	// Cache tells the site's caches from those of others; empty: it has none.
	Cache string `json:"cache"`
	// Packages is the folder in the exported one whose npm packages are to be
	// installed before the build, none where it is empty; PackageFiles are the
	// files in it that decide them.
	Packages     string   `json:"packages"`
	PackageFiles []string `json:"packageFiles"`
	// Built is the folder of the site that the commands of afterBuild find it in.
	Built string `json:"built"`
}

// exported is a clean working tree's committed content.
type exported struct {
	commit
	// file is commit.json, folder what it was exported to.
	file   *dagger.File
	folder *dagger.Directory
	// besideDone says that what ran beside the build found nothing.
	besideDone bool
}

// compiled is castle's container with the program in place, so that compiling
// it, which the first run has to do, counts as a step of its own.
func (b blog) compiled(ctx context.Context) (_ *dagger.Container, err error) {
	ctx, done := b.timer.step(ctx, "compile castle")
	defer func() { done(err) }()
	container, err := b.castle.container(publishProgram)
	if err != nil {
		return nil, err
	}
	return container.Sync(ctx)
}

// export refuses a working tree that is not clean and takes the committed
// content out of Git, so that nothing untracked or ignored gets in. With dirty
// it takes the site's folder as it is. Headers that are none are refused with
// it, before anything is built.
func (b blog) export(ctx context.Context, dirty bool) (_ *exported, err error) {
	container, err := b.castle.container(publishProgram)
	if err != nil {
		return nil, err
	}
	ctx, done := b.timer.step(ctx, "check and export the commit")
	defer func() { done(err) }()
	if err := b.checkHeaders(ctx, container); err != nil {
		return nil, err
	}
	hugo, err := b.castle.entry("hugo")
	if err != nil {
		return nil, err
	}
	out := container.
		WithMountedDirectory("/source", b.source).
		WithExec([]string{publishProgram, "export", "--source=/source", "--path=" + b.path, "--out=" + made, fmt.Sprintf("--dirty=%t", dirty),
			fmt.Sprintf("--packages=%t", len(b.after) > 0),
			"--hugo=" + b.asked.Version, "--hugo-from=" + b.asked.From, "--hugo-default=" + versionOf(hugo)})
	text, err := out.Stdout(ctx)
	if err != nil {
		return nil, err
	}
	export := &exported{file: fileOf("commit.json", text), folder: out.Directory(made)}
	err = json.Unmarshal([]byte(text), &export.commit)
	if export.Hugo.Version == b.asked.Version {
		export.Hugo.Digest = b.asked.Digest
	}
	return export, err
}

// fileOf is a file with a text. Steps that get it are cached as long as the text is the same, whatever else was made with it;
// a file out of a large folder would also cost the engine a checksum.
func fileOf(name, text string) *dagger.File {
	return dag.Directory().WithNewFile(name, text).File(name)
}

// checkHeaders asks castle about headers that are spelt in any but the usual
// ways.
func (b blog) checkHeaders(ctx context.Context, container *dagger.Container) error {
	switch b.headers {
	case "fitted", "strict", "off":
		return nil
	}
	_, err := container.WithExec([]string{publishProgram, "headers", "--headers=" + b.headers}).Sync(ctx)
	return err
}

// reachable makes sure that a detached HEAD is a commit that the remote's
// branches or tags hold. It asks the remote, so it is never cached. A remote in
// the user's own file system cannot be asked from a container.
func (b blog) reachable(ctx context.Context, export *exported, access gitAccess) (err error) {
	if !export.Detached || export.Source == "" {
		return nil
	}
	ctx, done := b.timer.step(ctx, "find the commit on the remote")
	defer func() { done(err) }()
	container, err := b.castle.container(publishProgram)
	if err != nil {
		return err
	}
	container, flags := access.attach(container)
	_, err = uncached(container).
		WithMountedFile("/commit.json", export.file).
		WithExec(append([]string{publishProgram, "reachable", "--commit=/commit.json"}, flags...)).
		Sync(ctx)
	return err
}

// besideAfter is how long a build may take before anything is run beside it. One of which all steps are cached is over by
// then, and would only share its processors with a container that nobody waits for.
const besideAfter = 300 * time.Millisecond

// whole takes a clean commit all the way to its image. What runs beside the
// build ends it where it fails, and is not waited for where the build was
// faster, as when nothing changed: export.besideDone says whether it was done.
func (b blog) whole(ctx context.Context, at *settings, access gitAccess) (export *exported, built *assembled, err error) {
	if export, err = b.export(ctx, false); err != nil {
		return nil, nil, err
	}
	both, building := errgroup.WithContext(ctx)
	beside, stop := context.WithCancel(building)
	if b.beside != nil {
		both.Go(func() error {
			select {
			case <-beside.Done():
				return building.Err()
			case <-time.After(besideAfter):
			}
			err := b.beside(beside, export)
			if beside.Err() != nil {
				return building.Err()
			}
			export.besideDone = err == nil
			return err
		})
	}
	both.Go(func() error {
		defer stop()
		if err := b.reachable(building, export, access); err != nil {
			return err
		}
		site, err := b.hugo(building, export)
		if err != nil {
			return err
		}
		built, err = b.image(building, export, site.public, serving{port: at.Port, platforms: at.Platforms})
		if err != nil {
			return err
		}
		built.site = site
		return nil
	})
	err = both.Wait()
	return export, built, err
}

// builtSite is what Hugo built. made holds the same, and warnings.json with what castle warns of, for the report.
type builtSite struct {
	public, made *dagger.Directory
}

// hugo builds the site. Modules, processed images and fetched resources are
// kept between runs of the same version of Hugo.
func (b blog) hugo(ctx context.Context, export *exported) (*builtSite, error) {
	entry, err := b.castle.hugoEntry(export.Hugo)
	if err != nil {
		return nil, err
	}
	asItIs := func(container *dagger.Container) *dagger.Container { return container }
	return b.build(ctx, export, b.cached(export, "hugo-"+entry.named()), asItIs)
}

// hugoAnew builds the site with nothing that an earlier build left.
func (b blog) hugoAnew(ctx context.Context, export *exported) (*builtSite, error) {
	return b.build(ctx, export, uncached, uncached)
}

// build builds the site with these caches and runs afterBuild; anew runs that again, too.
func (b blog) build(ctx context.Context, export *exported, caches, anew dagger.WithContainerFunc) (*builtSite, error) {
	container, folder, site, err := b.runHugo(ctx, export, caches)
	if err != nil || len(b.after) == 0 {
		return site, err
	}
	site.public, err = b.runAfter(ctx, container.With(anew), folder, export, site.public)
	return site, err
}

// runHugo builds the site, in a container with Hugo and on a folder with the npm packages.
func (b blog) runHugo(ctx context.Context, export *exported, caches dagger.WithContainerFunc) (
	container *dagger.Container, folder *dagger.Directory, _ *builtSite, err error,
) {
	ctx, done := b.timer.step(ctx, "build the site with Hugo")
	defer func() { done(err) }()
	container, _, err = b.castle.hugoImage(ctx, export.Hugo)
	if err != nil {
		return nil, nil, nil, err
	}
	container, err = b.castle.with(publishProgram, container.WithUser("root"))
	if err != nil {
		return nil, nil, nil, err
	}
	folder = export.folder
	if export.Packages != "" {
		folder = folder.WithDirectory(export.Packages, b.nodeModules(container, export))
	}
	public, warnings := path.Join(made, "public"), path.Join(made, "warnings.json")
	out, err := container.
		With(caches).
		WithMountedDirectory("/export", folder).
		WithExec(append([]string{publishProgram, "build", "--site=" + path.Join("/export", export.Site),
			"--cache=" + cacheMount, "--out=" + public,
			"--base-url=" + b.baseURL, "--hugo-from=" + export.Hugo.From, "--warnings-out=" + warnings,
			fmt.Sprintf("--after-build=%t", len(b.after) > 0)}, given(flag{"retry-for", b.retryFor})...)).
		Directory(made).
		Sync(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	return container, folder, &builtSite{public: out.Directory("public"), made: out}, nil
}

// runAfter runs the commands of afterBuild on what Hugo built, which is in the site's folder as on its author's
// machine. They get no cache and no secret, and castle-publish gives them no network.
func (b blog) runAfter(
	ctx context.Context, container *dagger.Container, folder *dagger.Directory, export *exported, public *dagger.Directory,
) (_ *dagger.Directory, err error) {
	ctx, done := b.timer.step(ctx, "run afterBuild")
	defer func() { done(err) }()
	at := path.Join(export.Site, export.Built)
	args := []string{publishProgram, "after-build", "--site=" + path.Join("/export", export.Site), "--built=" + path.Join("/export", at)}
	for _, command := range b.after {
		args = append(args, "--run="+command)
	}
	return container.
		WithMountedDirectory("/export", folder.WithoutDirectory(at).WithDirectory(at, public)).
		WithExec(args).
		Directory(path.Join("/export", at)).
		Sync(ctx)
}

// nodeModules is a folder with the npm packages that the site's lock file pins,
// made again only when one of these files changes.
func (b blog) nodeModules(hugo *dagger.Container, export *exported) *dagger.Directory {
	lists := dag.Directory().WithDirectory("/", export.folder.Directory(export.Packages), dagger.DirectoryWithDirectoryOpts{
		Include: export.PackageFiles,
	})
	return hugo.
		With(b.cached(export, "npm")).
		WithMountedDirectory("/site", lists).
		WithExec(append([]string{publishProgram, "node-modules", "--site=/site", "--cache=" + cacheMount, "--out=" + made},
			given(flag{"retry-for", b.retryFor})...)).
		Directory(made)
}

// serving says how an image serves the site.
type serving struct {
	port      int
	platforms []dagger.Platform
}

// assembled is an image: made holds its OCI layout, one image or an index over
// several platforms, in the folder image, and in headers.json which headers it
// sends. Whoever needs both mounts it whole: each part that is taken out of it
// would cost the engine a checksum.
type assembled struct {
	made *dagger.Directory
	site *builtSite // that it is made of, where it is on its way to a registry
}

func (a *assembled) layout() *dagger.Directory { return a.made.Directory("image") }

// image puts the built site on top of nginx.
func (b blog) image(ctx context.Context, export *exported, public *dagger.Directory, as serving) (_ *assembled, err error) {
	ctx, done := b.timer.step(ctx, "assemble the image")
	defer func() { done(err) }()
	container, err := b.castle.container(publishProgram)
	if err != nil {
		return nil, err
	}
	if len(as.platforms) == 0 {
		as.platforms = []dagger.Platform{""} // the engine's own
	}
	_, hugoName, err := b.castle.hugoImage(ctx, export.Hugo)
	if err != nil {
		return nil, err
	}
	layout, headers := path.Join(made, "image"), path.Join(made, "headers.json")
	args := []string{publishProgram, "image", "--site=/public", "--commit=/commit.json", "--hugo-name=" + hugoName,
		fmt.Sprintf("--port=%d", as.port), "--headers=" + b.headers, "--base-url=" + b.baseURL, "--headers-out=" + headers,
		"--cache=" + cacheMount, "--out=" + layout}
	for _, command := range b.after {
		args = append(args, "--after-build="+command)
	}
	for i, platform := range as.platforms {
		base, err := b.castle.image("nginx", platform)
		if err != nil {
			return nil, err
		}
		// The tarball's own digest is no name for it: the engine writes the
		// time of its pull into the configuration.
		name, err := base.ImageRef(ctx)
		if err != nil {
			return nil, err
		}
		file := fmt.Sprintf("/base/%d.tar", i)
		container = container.WithMountedFile(file, base.AsTarball())
		args = append(args, "--base="+file, "--base-name="+name)
		if platform != "" {
			args = append(args, "--platform="+string(platform))
		}
	}
	out, err := container.
		With(b.cached(export, "site-image")).
		WithMountedFile("/commit.json", export.file).
		WithMountedDirectory("/public", public).
		WithExec(args).
		Directory(made).
		Sync(ctx)
	if err != nil {
		return nil, err
	}
	return &assembled{made: out}, nil
}

// timer takes down how long each step took, for the report.
type timer struct {
	began time.Time
	flags []string
	// alone has Dagger show the steps, and those of castle's own that are for
	// showing, instead of everything that they are made of.
	alone bool
}

func newTimer() *timer { return &timer{began: time.Now()} }

// step starts a step's clock and its span; the returned function ends both. What
// is asked of the engine with the step's context is shown below the step.
func (t *timer) step(ctx context.Context, name string) (_ context.Context, done func(error)) {
	start := time.Now()
	ctx, end := shown(ctx, name, t.alone)
	return ctx, func(err error) {
		end(err)
		t.flags = append(t.flags, fmt.Sprintf("--step=%s=%s", name, time.Since(start).Round(time.Millisecond)))
	}
}

// all are the flags that hand the finished steps on to the report.
func (t *timer) all() []string {
	return append(t.flags, "--began="+t.began.UTC().Format(time.RFC3339Nano))
}
