// Package hugobuild builds an exported site inside the Hugo image: the npm packages of its lock file, Hugo, which
// fetches the modules of go.mod, and the commands of castle.yaml's afterBuild. What the commit pins goes in, and nothing
// that an earlier build left behind; what the site needs and cannot have here ends in one line that names it and the way
// out.
package hugobuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"tazlab.net/castle/ci/publish/site/hugoversion"
)

// buildTimeout bounds one run of Hugo, downloads of modules included.
const buildTimeout = 30 * time.Minute

// Options say what to build.
type Options struct {
	Site    string // the site's folder
	Out     string // where the built site goes
	Cache   string // for modules, processed images and fetched resources, kept between builds with one version of Hugo
	BaseURL string // instead of the configuration's; "" keeps that
	From    string // who asks for this version of Hugo

	RetryFor time.Duration // how long a download of modules that fails is tried again

	Log io.Writer // what Hugo says while it runs
}

// Build runs Hugo, with all of its environment that matters set here. It fails where Hugo does, where a theme asks for a newer
// Hugo, and where go.mod left a version open, which Hugo would choose anew on another day. Where a theme asks for an older one,
// it warns, and where the base URL is none that readers reach.
func Build(ctx context.Context, opts Options) (warnings []string, err error) {
	var own baseURL
	if opts.BaseURL == "" {
		if own, err = ownBaseURL(opts.Site); err == nil {
			err = own.check()
		}
		if err != nil {
			return nil, err
		}
	}
	pinned, err := required(opts.Site)
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "castle-home-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(gitConfig), 0o600); err != nil {
		return nil, err
	}
	env, err := environment(ctx, opts, home)
	if err != nil {
		return nil, err
	}
	warning, err := checkVersion(ctx, opts, env)
	if err != nil {
		return nil, err
	}
	if warning != "" {
		warnings = append(warnings, warning)
	}
	// Not "hugo build": older versions know the command without its name only.
	args := []string{"--minify", "--noBuildLock", "--source=" + opts.Site, "--destination=" + opts.Out}
	if opts.BaseURL != "" {
		args = append(args, "--baseURL="+opts.BaseURL)
	}
	if _, err := opts.hugo(ctx, args, env, opts.Log); err != nil {
		return nil, err
	}
	if err := unpinned(opts.Site, pinned); err != nil {
		return nil, err
	}
	if err := hasPages(opts.Out); err != nil {
		return nil, err
	}
	if err := hasHome(opts.Out, opts.Site); err != nil || opts.BaseURL != "" {
		return warnings, err
	}
	if warning, err = own.warning(opts.Out); warning != "" {
		warnings = append(warnings, warning)
	}
	return warnings, err
}

// pageExtensions are those of pages, and of what a site without pages is for.
var (
	htmlExtensions = []string{".html", ".htm", ".xhtml"}
	pageExtensions = append([]string{".json"}, htmlExtensions...)
)

// hasPages refuses a built site without a page: Hugo is content where it finds neither layouts nor content.
func hasPages(folder string) error {
	page, err := firstFile(folder, func(name string, _ fs.DirEntry) (bool, error) {
		return slices.Contains(pageExtensions, strings.ToLower(filepath.Ext(name))), nil
	})
	if page != "" || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.New("the built site has no page: Hugo found no layouts or no content; " +
		"check that the commit has the folders that theme, themesDir, contentDir and module.mounts of Hugo's configuration name")
}

// firstFile is the first file of a folder that is looked for, by its path in it; empty where there is none.
func firstFile(folder string, is func(name string, entry fs.DirEntry) (bool, error)) (found string, err error) {
	err = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if it, err := is(name, entry); err != nil || !it {
			return err
		}
		if found, err = filepath.Rel(folder, name); err != nil {
			return err
		}
		return fs.SkipAll
	})
	return found, err
}

// gitConfig is what the image's own user has in its home, and another user builds here: with Git's default, Hugo
// finds no history of a file whose name is not ASCII. It is a file because Hugo hands no GIT_CONFIG_COUNT on to git
// (security.exec.osEnv). The image's safe.directory is for its own folder /project; an export belongs to the user who
// builds it. Source: Dockerfile and config/security/securityConfig.go of Hugo v0.165.0.
const gitConfig = "[core]\n\tquotePath = false\n"

// checkVersion has Hugo read the configurations of the site and its themes, which takes a moment and already tells what they ask
// of its version. A site whose configuration it refuses fails here as it would in the build.
func checkVersion(ctx context.Context, opts Options, env []string) (warning string, err error) {
	said, err := run(ctx, command{timeout: time.Minute, name: "hugo", args: []string{"version"}})
	if err != nil {
		return "", err
	}
	version := hugoVersion.FindStringSubmatch(said)
	if version == nil {
		return "", fmt.Errorf("hugo version says %q, which has no version", strings.TrimSpace(said))
	}
	said, failed := opts.hugo(ctx, []string{"config", "--source=" + opts.Site}, env, nil)
	warning, err = check(requirements(said), hugoversion.Choice{Version: version[1], From: opts.From})
	return warning, cmp.Or(err, failed)
}

// hugo runs Hugo, which downloads modules first.
func (opts Options) hugo(ctx context.Context, args, env []string, log io.Writer) (said string, err error) {
	c := command{timeout: buildTimeout, name: "hugo", args: args, env: env, log: log}
	return downloaded(ctx, c, opts.RetryFor, "download Hugo modules", lostModule, func(said string) error { return explain(opts.Site, opts.From, said) })
}

// environment is Hugo's. Style sheets are compiled always, even where the site's configuration would take them from the
// resources folder, or a build would succeed or fail by what was built before.
func environment(ctx context.Context, opts Options, home string) ([]string, error) {
	env := []string{
		"HOME=" + home,
		"TZ=UTC",
		"HUGO_CACHEDIR=" + filepath.Join(opts.Cache, "hugo"),
		"HUGO_RESOURCEDIR=" + filepath.Join(opts.Cache, "resources"),
		"HUGO_BUILD_USERESOURCECACHEWHEN=never",
		"PATH=" + searchPath(filepath.Dir(opts.Site)), // those in the site's own folder Hugo finds by itself
	}
	if named, err := namesProxy(opts.Site); err != nil || named {
		return env, err
	}
	if _, err := os.Stat(filepath.Join(opts.Site, goMod)); err != nil {
		return env, nil
	}
	// Hugo goes to each module's repository itself unless told otherwise. Go's own way is faster, has what a repository
	// lost, and works where only a module proxy can be reached.
	proxy, err := run(ctx, command{timeout: time.Minute, name: "go", args: []string{"env", "GOPROXY"}, env: []string{"HOME=" + home}})
	if err != nil {
		return nil, err
	}
	return append(env, "HUGO_MODULE_PROXY="+strings.TrimSpace(proxy)), nil
}

// searchPath is PATH with the programs of npm packages that are installed in a folder and above it, nearest first, as
// npm itself starts programs.
func searchPath(from string) string {
	var folders []string
	for folder := from; ; folder = filepath.Dir(folder) {
		programs := filepath.Join(folder, "node_modules", ".bin")
		if info, err := os.Stat(programs); err == nil && info.IsDir() {
			folders = append(folders, programs)
		}
		if folder == filepath.Dir(folder) {
			return strings.Join(append(folders, os.Getenv("PATH")), string(filepath.ListSeparator))
		}
	}
}

var proxySetting = regexp.MustCompile(`(?im)^[\s\w."'{]*\bproxy["']?\s*[=:]`)

// namesProxy tells whether the site's configuration has a module proxy of its own, or may have: where the word stands as
// a key for something else, the site only loses what environment would add.
func namesProxy(site string) (bool, error) {
	var files []string
	for _, pattern := range []string{"hugo.*", "config.*", "config/*/*", "config/*"} {
		found, err := filepath.Glob(filepath.Join(site, pattern))
		if err != nil {
			return false, err
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		if proxySetting.Match(data) {
			return true, nil
		}
	}
	return false, nil
}

const goMod = "go.mod"

// required are the versions that the site's go.mod asks for, by module; none without a go.mod.
func required(site string) (map[string]string, error) {
	data, err := os.ReadFile(filepath.Join(site, goMod))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	parsed, err := modfile.ParseLax(goMod, data, nil)
	if err != nil {
		return nil, fmt.Errorf("the site's go.mod: %w", err)
	}
	versions := map[string]string{}
	for _, require := range parsed.Require {
		versions[require.Mod.Path] = require.Mod.Version
	}
	return versions, nil
}

// unpinned compares go.mod with what it asked for before Hugo ran.
func unpinned(site string, before map[string]string) error {
	after, err := required(site)
	if err != nil {
		return err
	}
	var open []string
	for _, module := range sortedKeys(after) {
		if before[module] != after[module] {
			open = append(open, module)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return fmt.Errorf("go.mod leaves the version of %s open, so the same commit would be another site on another day: run hugo mod tidy "+
		"and commit go.mod and go.sum", strings.Join(open, " and "))
}
