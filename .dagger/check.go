package main

import (
	"context"
	"strings"

	"dagger/castle/internal/dagger"
)

// CheckBlog builds the blog and looks for broken internal links and anchors,
// missing translations, invalid HTML and XML, and requests to other hosts.
//
// What breaks the site for a visitor is an error and fails the call; what a
// theme's templates do is a warning. Findings of the same cause are one row
// with three examples; `blog-findings` has them all.
func (m *Castle) CheckBlog(
	ctx context.Context,
	// The blog's working tree (a path), or a Git URL with a ref.
	// +defaultPath="/"
	source *dagger.Directory,
	// The Hugo site's folder in the source; "." for its root.
	// +default="blog"
	path string,
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
	// The headers that the site is published with. With "strict", requests to
	// other hosts are errors.
	// +default="fitted"
	headers string,
	// How the report is written.
	// +default="TEXT"
	format Format,
) (string, error) {
	check := blogCheck{castle: m, source: source, path: path, languages: languages, ignore: ignore, headers: headers}
	container, args, err := check.command(ctx)
	if err != nil {
		return "", err
	}
	if baseline != nil {
		container = container.WithMountedFile("/baseline.json", baseline)
		args = append(args, "--baseline=/baseline.json")
	}
	text, err := container.WithExec(append(args, "--format="+strings.ToLower(string(format)))).Stdout(ctx)
	return text, plain(err)
}

// BlogFindings is all that check-blog finds, as JSON, whether or not it fails:
// `dagger call blog-findings export --path findings.json`.
func (m *Castle) BlogFindings(
	ctx context.Context,
	// The blog's working tree (a path), or a Git URL with a ref.
	// +defaultPath="/"
	source *dagger.Directory,
	// The Hugo site's folder in the source; "." for its root.
	// +default="blog"
	path string,
	// The languages that every page must exist in. Default: those that the
	// site's own pages announce.
	// +optional
	languages []string,
	// What to leave out, as for check-blog.
	// +optional
	ignore []string,
	// The headers that the site is published with, as for check-blog.
	// +default="fitted"
	headers string,
) (*dagger.File, error) {
	check := blogCheck{castle: m, source: source, path: path, languages: languages, ignore: ignore, headers: headers}
	return check.file(ctx, "--report-only", "--out="+made+".json")
}

// BlogBaseline is what check-blog finds today, for its --baseline: only what is
// new fails then. `dagger call blog-baseline export --path baseline.json`.
func (m *Castle) BlogBaseline(
	ctx context.Context,
	// The blog's working tree (a path), or a Git URL with a ref.
	// +defaultPath="/"
	source *dagger.Directory,
	// The Hugo site's folder in the source; "." for its root.
	// +default="blog"
	path string,
	// The languages that every page must exist in. Default: those that the
	// site's own pages announce.
	// +optional
	languages []string,
	// What to leave out, as for check-blog.
	// +optional
	ignore []string,
	// The headers that the site is published with, as for check-blog.
	// +default="fitted"
	headers string,
) (*dagger.File, error) {
	check := blogCheck{castle: m, source: source, path: path, languages: languages, ignore: ignore, headers: headers}
	return check.file(ctx, "--write-baseline="+made+".json")
}

// blogCheck is a check of the blog as it stands, uncommitted changes included.
type blogCheck struct {
	castle            *Castle
	source            *dagger.Directory
	path              string
	languages, ignore []string
	headers           string
}

// command is the container with the built site, and the command that checks it.
func (c blogCheck) command(ctx context.Context) (*dagger.Container, []string, error) {
	blog := blog{castle: c.castle, source: c.source, path: c.path, timer: newTimer()}
	export, err := blog.export(ctx, true)
	if err != nil {
		return nil, nil, plain(err)
	}
	public, err := blog.hugo(ctx, export, "")
	if err != nil {
		return nil, nil, plain(err)
	}
	base, err := c.castle.castle()
	if err != nil {
		return nil, nil, err
	}
	args := []string{"castle", "blog", "check", "--site=/public", "--headers=" + c.headers}
	for _, language := range c.languages {
		args = append(args, "--language="+language)
	}
	for _, entry := range c.ignore {
		args = append(args, "--ignore="+entry)
	}
	return base.WithMountedDirectory("/public", public), args, nil
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
