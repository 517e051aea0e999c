package hugobuild

import (
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

	"mvdan.cc/sh/v3/syntax"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// afterTimeout bounds all commands of afterBuild together.
const afterTimeout = 15 * time.Minute

// AfterOptions say what runs once Hugo has built the site.
type AfterOptions struct {
	Site     string   // the site's folder, in which the commands run
	Built    string   // what Hugo built, below it; the commands change it in place
	Commands []string // for sh, one after the other

	Log io.Writer // what they say while they run
}

// BuiltFolder is the folder in the site's that Hugo builds into on its author's machine, which commands name.
func BuiltFolder(config hugoconfig.Config) string {
	const usual = "public"
	if folder := filepath.Clean(config.Text("publishDir", usual)); filepath.IsLocal(folder) && folder != "." {
		return folder
	}
	return usual
}

// After runs the commands of castle.yaml's afterBuild. They find the programs of the site's npm packages, have no network, and
// nothing of this process's environment. One that fails, or takes pages away, ends it.
func After(ctx context.Context, opts AfterOptions) error {
	home, err := os.MkdirTemp("", "castle-home-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	// npx runs what is installed, and must not wait for a registry to ask it for what is not.
	env := []string{
		"HOME=" + home, "TZ=UTC", "LANG=C.UTF-8", "PATH=" + searchPath(opts.Site), "npm_config_offline=true", "npm_config_update_notifier=false",
	}
	for _, line := range opts.Commands {
		if err := programsThere(ctx, opts.Site, line, env); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, afterTimeout, fmt.Errorf("the commands of afterBuild did not end within %s", afterTimeout))
	defer cancel()
	for _, line := range opts.Commands {
		before, err := pageSizes(opts.Built)
		if err != nil {
			return err
		}
		fmt.Fprintf(opts.Log, "afterBuild: %s\n", line)
		said, err := run(ctx, command{
			timeout: afterTimeout, name: "sh", args: []string{"-c", line}, dir: opts.Site, only: env, offline: true, log: opts.Log,
		})
		if failed := (*failure)(nil); errors.As(err, &failed) {
			return explainAfter(opts.Site, line, said, failed.err)
		}
		if err != nil {
			return fmt.Errorf("afterBuild: %s: %w", line, err)
		}
		if err := keepsPages(opts.Built, line, before); err != nil {
			return err
		}
	}
	return nil
}

// CheckAfter refuses a command that a shell would not understand.
func CheckAfter(line string) error {
	_, err := programsOf(line)
	return err
}

// programsOf are the programs of PATH that a command starts, as far as they stand in it: those behind npx as well.
func programsOf(line string) ([]string, error) {
	parsed, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, fmt.Errorf("%q is not a command for a shell (%w)", line, err)
	}
	if len(parsed.Stmts) == 0 {
		return nil, fmt.Errorf("%q has no command", line)
	}
	var programs, functions []string
	syntax.Walk(parsed, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.FuncDecl:
			functions = append(functions, node.Name.Value)
		case *syntax.CallExpr:
			programs = append(programs, started(node.Args)...)
		}
		return true
	})
	return slices.DeleteFunc(programs, func(name string) bool {
		return name == "" || strings.Contains(name, "/") || slices.Contains(functions, name)
	}), nil
}

func started(args []*syntax.Word) []string {
	if len(args) == 0 {
		return nil
	}
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg.Lit() // empty where it is not known before it runs
	}
	if words[0] == "npx" {
		return []string{"npx", behindNpx(words[1:])}
	}
	return words[:1]
}

// behindNpx is the program that npx starts, empty where its name does not follow from that of the package.
func behindNpx(words []string) string {
	for _, word := range words {
		if name, _, _ := strings.Cut(word, "@"); !strings.HasPrefix(word, "-") {
			return name
		}
		if word != "-y" && word != "--yes" && word != "--no" && word != "--no-install" && word != "--" {
			return ""
		}
	}
	return ""
}

// programsThere makes sure that a command's programs are there, before any command runs.
func programsThere(ctx context.Context, site, line string, env []string) error {
	programs, err := programsOf(line)
	if err != nil {
		return fmt.Errorf("afterBuild: %w", err)
	}
	for _, name := range programs {
		_, err := run(ctx, command{
			timeout: time.Minute, name: "sh", args: []string{"-c", `command -v -- "$1"`, "sh", name}, dir: site, only: env,
		})
		if failed := (*failure)(nil); errors.As(err, &failed) {
			return noSuchProgram(site, line, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func noSuchProgram(site, line, name string) error {
	from := packageOf[name]
	if from == "" {
		from = name
	}
	if !lockedAbove(site) && !isThere(site, "node_modules") {
		return fmt.Errorf("afterBuild: %s: there is no program %s, and nothing is installed without a lock file of npm%s: "+
			"run npm install --save-dev %s and commit package.json and package-lock.json", line, name, otherLock(site), from)
	}
	return fmt.Errorf("afterBuild: %s: neither Hugo's image nor the site's lock file, from which node_modules/.bin is installed, has a program %s: "+
		"run npm install --save-dev %s and commit package.json and package-lock.json", line, name, from)
}

// offlineSaid is how programs, npm and Node.js say that there is no network.
var offlineSaid = regexp.MustCompile(`(?i)network is unreachable|ENETUNREACH|EAI_AGAIN|ENOTFOUND|ENOTCACHED|could not resolve|no such host`)

// explainAfter says which command failed, with the end of what it said.
func explainAfter(site, line, said string, err error) error {
	if missing := packageMissing(site, said); missing != nil {
		return fmt.Errorf("afterBuild: %s: %w", line, missing)
	}
	hint := ""
	if offlineSaid.MatchString(said) {
		hint = "\nThe commands of afterBuild have no network: commit what they need, or have the lock file name it."
	}
	if said = orLast(nil, said); said == "" {
		return fmt.Errorf("afterBuild: %s: %w; it said nothing", line, err)
	}
	return fmt.Errorf("afterBuild: %s: %w. The end of what it said:\n%s%s", line, err, said, hint)
}

// pageSizes are the pages of a built site, by their paths in it.
func pageSizes(built string) (map[string]int64, error) {
	sizes := map[string]int64{}
	err := filepath.WalkDir(built, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains(htmlExtensions, strings.ToLower(filepath.Ext(name))) {
			return err
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		at, err := filepath.Rel(built, name)
		sizes[filepath.ToSlash(at)] = info.Size()
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return sizes, err
}

// keepsPages refuses what a command left where pages are missing that were there before it, or empty.
func keepsPages(built, line string, before map[string]int64) error {
	after, err := pageSizes(built)
	if err != nil {
		return fmt.Errorf("afterBuild: %s: %w", line, err)
	}
	var gone []string
	for _, page := range sortedKeys(before) {
		if size, there := after[page]; !there || size == 0 && before[page] > 0 {
			gone = append(gone, page)
		}
	}
	if len(gone) > 0 {
		return fmt.Errorf("afterBuild: %s: removed or emptied %d of %d pages that Hugo built, such as %s: a command may add files and change them; "+
			"keep a page out of the site with draft or build in its front matter", line, len(gone), len(before), strings.Join(gone[:min(3, len(gone))], ", "))
	}
	if err := hasPages(built); err != nil {
		return fmt.Errorf("afterBuild: %s: left the built site without a page", line)
	}
	return nil
}
