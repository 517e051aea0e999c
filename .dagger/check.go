package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"dagger/castle/internal/dagger"
)

// CheckBlog builds the blog and looks for broken internal links and anchors,
// missing translations, invalid HTML and XML, and requests to other hosts.
//
// What breaks the site for a visitor is an error and fails the call; what a
// theme's templates do is a warning. Findings of the same cause are one row
// with three examples; `blog-findings` has them all.
//
// Two other looks, each a call of its own: --browser opens the pages behind the
// headers that they are published with, --twice compares two builds.
//
// +check
func (m *Castle) CheckBlog(
	ctx context.Context,
	// The blog's working tree (a path), or a Git URL with a ref.
	// +defaultPath="/"
	source *dagger.Directory,
	// The site's name in castle.yaml. Default: the only one, or all of them where
	// the report is plain text and no other look is asked for.
	// +optional
	site string,
	// The Hugo site's folder in the source; "." for its root.
	// +optional
	path string,
	// The version of Hugo, such as 0.148.1. Default: what the repository names,
	// else castle's own.
	// +optional
	hugo string,
	// The languages that every page must exist in. Default: those that the
	// site's own pages announce.
	// +optional
	languages []string,
	// What to leave out: a rule (img-alt), or a rule and a pattern for the
	// cause or the file as the report shows them (broken-link:/old/*).
	// +optional
	ignore []string,
	// What is known and fails no more: the file that blog-baseline gives.
	// +optional
	baseline *dagger.File,
	// The site's base URL, where it is published with another one than castle.yaml
	// or Hugo's configuration has.
	// +optional
	baseUrl string,
	// The headers that the site is published with. With "strict", requests to
	// other hosts are errors.
	// +optional
	headers string,
	// Open one page of every kind in headless Chromium, at the width of a phone
	// and of a desk, behind the site's own headers: violations of the policy,
	// errors that are not there without the headers, and missing files of the
	// site's own fail the call.
	// +optional
	browser bool,
	// For --browser: let it find no host but the site's.
	// +optional
	offline bool,
	// Build the site twice, with nothing kept from other builds: what differs is
	// listed with its cause, and fails the call.
	// +optional
	twice bool,
	// How the report is written.
	// +default="TEXT"
	format Format,
) (_ string, err error) {
	defer ended("check-blog", format, &err)
	check := blogCheck{site: m.siteToBuild(source, toBuild{site, path, hugo, baseUrl, headers}), languages: languages, ignore: ignore}
	look := check.command
	switch {
	case browser && twice:
		return "", errors.New("--browser and --twice are two looks: ask for one at a time")
	case (browser || twice) && (len(languages) > 0 || len(ignore) > 0 || baseline != nil):
		return "", errors.New("--languages, --ignore and --baseline are for the findings: they go neither with --browser nor with --twice")
	case offline && !browser:
		return "", errors.New("--offline is for --browser: without it no other host is asked")
	case browser:
		look = func(ctx context.Context) (*dagger.Container, []string, error) { return check.browse(ctx, offline) }
	case twice:
		look = check.compare
	}
	if site == "" && path == "" && baseUrl == "" && baseline == nil && !browser && !twice && format == FormatText {
		names, err := m.sites(ctx, source)
		if err != nil {
			return "", err
		}
		if len(names) == 0 {
			if named, err := isNamed(ctx, source); named || err != nil {
				return "", cmp.Or(err, errors.New("there is no site in --source: its castle.yaml names none, and no configuration of Hugo is at its root; name the site's folder with --path"))
			}
		}
		if len(names) != 1 { // `dagger check` asks in every repository, and names no site
			return checkEach(names, func(name string) (string, error) {
				check.site = m.siteToBuild(source, toBuild{name: name, hugo: hugo, headers: headers})
				container, args, err := check.command(ctx)
				if err != nil {
					return "", err
				}
				text, err := container.WithExec(append(args, "--format="+string(format))).Stdout(ctx)
				return text, plain(err)
			})
		}
	}
	container, args, err := look(ctx)
	if err != nil {
		return "", err
	}
	if baseline != nil {
		container = container.WithMountedFile("/baseline.json", baseline)
		args = append(args, "--baseline=/baseline.json")
	}
	text, err := container.WithExec(append(args, "--format="+string(format))).Stdout(ctx)
	return text, plain(err)
}

// checkEach checks each of several sites, or says that there is none.
func checkEach(names []string, check func(name string) (string, error)) (string, error) {
	if len(names) == 0 {
		return "there is no site here\n", nil
	}
	var said strings.Builder
	var failed []error
	for _, name := range names {
		text, err := check(name)
		if err != nil {
			failed = append(failed, fmt.Errorf("site %s:\n%w", name, err))
		} else {
			fmt.Fprintf(&said, "site %s:\n%s\n", name, text)
		}
	}
	return said.String(), errors.Join(failed...)
}

// BlogFindings is all that check-blog finds, as JSON, whether or not it fails:
// `dagger call blog-findings export --path findings.json`.
func (m *Castle) BlogFindings(
	ctx context.Context,
	// The blog's working tree (a path), or a Git URL with a ref.
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
	// The languages that every page must exist in. Default: those that the
	// site's own pages announce.
	// +optional
	languages []string,
	// What to leave out, as for check-blog.
	// +optional
	ignore []string,
	// The site's base URL, where it is published with another one than castle.yaml
	// or Hugo's configuration has.
	// +optional
	baseUrl string,
	// The headers that the site is published with, as for check-blog.
	// +optional
	headers string,
) (*dagger.File, error) {
	check := blogCheck{site: m.siteToBuild(source, toBuild{site, path, hugo, baseUrl, headers}), languages: languages, ignore: ignore}
	return check.file(ctx, "--report-only", "--out="+made+".json")
}

// BlogBaseline is what check-blog finds today, for its --baseline: only what is
// new fails then. `dagger call blog-baseline export --path baseline.json`.
func (m *Castle) BlogBaseline(
	ctx context.Context,
	// The blog's working tree (a path), or a Git URL with a ref.
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
	// The languages that every page must exist in. Default: those that the
	// site's own pages announce.
	// +optional
	languages []string,
	// What to leave out, as for check-blog.
	// +optional
	ignore []string,
	// The site's base URL, where it is published with another one than castle.yaml
	// or Hugo's configuration has.
	// +optional
	baseUrl string,
	// The headers that the site is published with, as for check-blog.
	// +optional
	headers string,
) (*dagger.File, error) {
	check := blogCheck{site: m.siteToBuild(source, toBuild{site, path, hugo, baseUrl, headers}), languages: languages, ignore: ignore}
	return check.file(ctx, "--write-baseline="+made+".json")
}

// BlogScreenshots are pictures of one page of every kind, at the width of a
// phone and of a desk, as Chromium shows them behind the site's own headers:
// `dagger call blog-screenshots export --path screenshots`.
func (m *Castle) BlogScreenshots(
	ctx context.Context,
	// The blog's working tree (a path), or a Git URL with a ref.
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
	// The site's base URL, where it is published with another one than castle.yaml
	// or Hugo's configuration has.
	// +optional
	baseUrl string,
	// The headers that the site is published with.
	// +optional
	headers string,
	// Let the browser find no host but the site's.
	// +optional
	offline bool,
) (*dagger.Directory, error) {
	container, args, err := blogCheck{site: m.siteToBuild(source, toBuild{site, path, hugo, baseUrl, headers})}.browse(ctx, offline)
	if err != nil {
		return nil, err
	}
	pictures, err := container.
		WithExec(append(args, "--screenshots="+made), dagger.ContainerWithExecOpts{Expect: dagger.ReturnTypeAny}).
		Directory(made).
		Sync(ctx)
	return pictures, plain(err)
}

// toBuild is all that a call can say of what is built, as publish-blog can.
type toBuild struct{ name, path, hugo, baseURL, headers string }

// siteToBuild is a site of which no more is asked than that it can be built.
func (m *Castle) siteToBuild(source *dagger.Directory, as toBuild) *Site {
	return &Site{Castle: m, Source: source, Given: given(flag{"site", as.name}, flag{"path", as.path}, flag{"hugo", as.hugo},
		flag{"base-url", as.baseURL}, flag{"headers", as.headers})}
}

// blogCheck is a check of the site as it stands, uncommitted changes included.
type blogCheck struct {
	site              *Site
	languages, ignore []string
}

// command is the container with the built site, and the command that checks it.
func (c blogCheck) command(ctx context.Context) (*dagger.Container, []string, error) {
	blog, _, public, err := c.build(ctx)
	if err != nil {
		return nil, nil, err
	}
	base, err := c.site.Castle.container(publishProgram)
	if err != nil {
		return nil, nil, err
	}
	args := []string{publishProgram, "check", "--site=/public", "--headers=" + blog.headers, "--base-url=" + blog.baseURL}
	for _, language := range c.languages {
		args = append(args, "--language="+language)
	}
	for _, entry := range c.ignore {
		args = append(args, "--ignore="+entry)
	}
	return base.WithMountedDirectory("/public", public), args, nil
}

// exported is the site's folder as it is.
func (c blogCheck) exported(ctx context.Context) (blog, *exported, error) {
	at, err := c.site.settings(ctx, forBuild)
	if err != nil {
		return blog{}, nil, err
	}
	blog := blog{castle: c.site.Castle, source: c.site.Source, path: at.Path, headers: at.Headers, baseURL: at.BaseURL,
		asked: at.hugo(), after: at.AfterBuild, use: toLook, timer: newTimer()}
	export, err := blog.export(ctx, true)
	return blog, export, plain(err)
}

// build builds the site as publish-blog would.
func (c blogCheck) build(ctx context.Context) (blog, *exported, *dagger.Directory, error) {
	blog, export, err := c.exported(ctx)
	if err != nil {
		return blog, nil, nil, err
	}
	built, err := blog.hugo(ctx, export)
	if err != nil {
		return blog, nil, nil, plain(err)
	}
	return blog, export, built.public, nil
}

// browse is the container with the browser, which reaches the site's image, and
// the command that opens its pages there.
func (c blogCheck) browse(ctx context.Context, offline bool) (*dagger.Container, []string, error) {
	blog, export, public, err := c.build(ctx)
	if err != nil {
		return nil, nil, err
	}
	const port = 8080
	built, err := blog.image(ctx, export, public, serving{port: port})
	if err != nil {
		return nil, nil, plain(err)
	}
	site, err := c.site.Castle.serveLayout(built.layout(), port)
	if err != nil {
		return nil, nil, err
	}
	browser, err := c.site.Castle.image("chromium", "")
	if err != nil {
		return nil, nil, err
	}
	browser, err = c.site.Castle.with(publishProgram, browser.WithUser("root"))
	if err != nil {
		return nil, nil, err
	}
	// The path is whole: who knows what PATH an image of a browser has.
	args := []string{"/usr/local/bin/" + publishProgram, "browse",
		fmt.Sprintf("--url=http://site:%d", port), "--site=/public", "--base-url=" + blog.baseURL,
		fmt.Sprintf("--offline=%t", offline)}
	return browser.WithMountedDirectory("/public", public).WithServiceBinding("site", site), args, nil
}

// compare is the container with two builds of the site, and the command that
// compares them.
func (c blogCheck) compare(ctx context.Context) (*dagger.Container, []string, error) {
	blog, export, err := c.exported(ctx)
	if err != nil {
		return nil, nil, err
	}
	container, err := c.site.Castle.container(publishProgram)
	if err != nil {
		return nil, nil, err
	}
	// One after the other, so that the clock goes on in between.
	for _, name := range []string{"/first", "/second"} {
		built, err := blog.hugoAnew(ctx, export)
		if err != nil {
			return nil, nil, plain(err)
		}
		container = container.WithMountedDirectory(name, built.public)
	}
	return container, []string{publishProgram, "compare", "--first=/first", "--second=/second"}, nil
}

// file is what the command writes to made.json with these flags.
func (c blogCheck) file(ctx context.Context, flags ...string) (*dagger.File, error) {
	container, args, err := c.command(ctx)
	if err != nil {
		return nil, err
	}
	file, err := container.WithExec(append(args, flags...)).File(made + ".json").Sync(ctx)
	return file, plain(err)
}
