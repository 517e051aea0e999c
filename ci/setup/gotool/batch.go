package gotool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Batch builds tools that share one compiler's cache and one toolchain: what two of them have in common, such as the
// standard library or Kubernetes' client, is then compiled once.
type Batch struct {
	builder Builder

	mutex   sync.Mutex        // of what follows
	scratch string            // "" until something is built
	own     bool              // scratch is the batch's to remove
	goRoots map[string]string // by version
}

// sideBySide is how many tools BuildAll builds at a time. Downloading and linking leave one of two cores idle.
const sideBySide = 2

// Batch begins a batch; the caller closes it.
func (b Builder) Batch() *Batch {
	return &Batch{builder: b, goRoots: map[string]string{}}
}

// Close removes what the batch compiled. The tools stay.
func (b *Batch) Close() {
	if b.own {
		removeReadOnly(b.scratch)
	}
	b.scratch, b.own = "", false
	clear(b.goRoots)
}

// BuildAll builds those of the tools that the cache does not have, some at a time, and ends with the first that fails.
func (b *Batch) BuildAll(ctx context.Context, names ...string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(sideBySide, runtime.NumCPU()))
	for _, name := range names {
		group.Go(func() error {
			_, err := b.Build(ctx, name)
			return err
		})
	}
	return group.Wait()
}

// Build returns the paths of a tool's programs by their names, after building them when the cache does not have them.
// The downloaded modules are removed afterwards: for all tools together they would fill tens of gigabytes. Two builds
// at once do the work twice; both end with the same complete folder.
func (b *Batch) Build(ctx context.Context, name string) (map[string]string, error) {
	recipe, err := Load(name)
	if err != nil {
		return nil, err
	}
	dir := b.builder.Dir(recipe)
	programs := make(map[string]string, len(recipe.Binaries))
	for binary := range recipe.Binaries {
		programs[binary] = filepath.Join(dir, binary)
	}
	if _, err := os.Stat(dir); err == nil {
		return programs, nil
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	if err := b.build(ctx, recipe, dir); err != nil {
		return nil, fmt.Errorf("build %s %s: %w", recipe.Name, recipe.Version, err)
	}
	return programs, nil
}

// Folders that last as long as a build, or a batch of them.
const (
	buildFolders = ".build-*"
	batchFolders = ".batch-*"
)

// abandoned is the age from which such a folder is nobody's any more: longer than all builds of a batch may take.
const abandoned = 24 * time.Hour

// sweep removes the folders of builds that were killed, which are gigabytes.
func sweep(pattern string, now time.Time) {
	folders, err := filepath.Glob(pattern)
	if err != nil {
		return // the pattern is ours
	}
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && now.Sub(info.ModTime()) > abandoned {
			removeReadOnly(folder)
		}
	}
}

func (b *Batch) build(ctx context.Context, recipe Recipe, dir string) error {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return errors.New("the go command is not on PATH: install Go 1.26 or newer from https://go.dev/dl")
	}
	if err := b.builder.compiler(ctx, recipe); err != nil {
		return err
	}
	start := time.Now()
	b.logf("building %s %s from Go modules (%s)", recipe.Name, recipe.Version, b.builder.Estimate(recipe))

	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	log, err := b.builder.openLog(recipe)
	if err != nil {
		return err
	}
	defer log.close()
	sweep(filepath.Join(filepath.Dir(dir), buildFolders), time.Now())
	work, err := os.MkdirTemp(filepath.Dir(dir), buildFolders)
	if err != nil {
		return err
	}
	defer removeReadOnly(work)
	source := filepath.Join(work, "source")
	built, out := filepath.Join(work, "built"), filepath.Join(work, "out")
	for _, folder := range []string{source, built, out} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
	}
	if err := b.prepare(); err != nil {
		return err
	}
	goRoot, err := b.goRoot(ctx, goCommand, recipe.Go, log)
	if err != nil {
		return err
	}
	run := func(args ...string) (string, error) {
		command := exec.CommandContext(ctx, filepath.Join(goRoot, "bin", "go"), args...)
		command.Dir = source
		command.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off", "GOTOOLCHAIN=local", "GOROOT=",
			"GOMODCACHE="+filepath.Join(work, "mod"), "GOCACHE="+filepath.Join(b.scratch, "compiled"))
		command.Env = append(command.Env, recipe.cgo()...)
		return log.output(command)
	}
	if recipe.pin == nil {
		err = writeRecipe(recipe.Name, source)
	} else {
		err = recipe.writeLists(source, run)
	}
	if err != nil {
		return err
	}

	// One command for all programs, so that they are compiled and linked side by side; it names each after its package.
	// What the linker would strip is not compiled in the first place: a fifth less to keep, a tenth less time.
	args := []string{"build", "-trimpath", "-mod=readonly", "-gcflags=all=-dwarf=false", "-tags", strings.Join(recipe.Tags, ","),
		"-ldflags", recipe.linkerFlags(), "-o", built + string(filepath.Separator)}
	for _, binary := range sortedKeys(recipe.Binaries) {
		args = append(args, path.Join(recipe.Module, recipe.Binaries[binary]))
	}
	if _, err := run(args...); err != nil {
		return err
	}
	for binary, pkg := range recipe.Binaries {
		if err := os.Rename(filepath.Join(built, programName(path.Join(recipe.Module, pkg))), filepath.Join(out, binary)); err != nil {
			return err
		}
	}
	from := origins{recipe: source, module: func(path string) (string, error) {
		folder, err := run("list", "-mod=readonly", "-m", "-f", "{{.Dir}}", cmp.Or(path, recipe.Module))
		return strings.TrimSpace(folder), err
	}}
	if err := keepFiles(from, out, recipe.Files); err != nil {
		return err
	}
	if err := os.Rename(out, dir); err != nil && !isDir(dir) {
		return err
	}
	b.logf("built %s %s in %s", recipe.Name, recipe.Version, time.Since(start).Round(time.Second))
	// How long it took beside another one says little of how long it takes.
	return b.builder.record(recipe, (*log.used / time.Duration(runtime.NumCPU())).Round(time.Second))
}

// logf tells of a build, of which there may be several at a time.
func (b *Batch) logf(format string, args ...any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.builder.logf(format, args...)
}

// prepare makes the scratch folder before the batch's first build.
func (b *Batch) prepare() error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.scratch != "" {
		return nil
	}
	if b.builder.Scratch != "" {
		folder, err := filepath.Abs(b.builder.Scratch)
		if err != nil {
			return err
		}
		b.scratch = folder
		return os.MkdirAll(folder, 0o755)
	}
	var err error
	sweep(filepath.Join(b.builder.Cache, batchFolders), time.Now())
	b.scratch, err = os.MkdirTemp(b.builder.Cache, batchFolders)
	b.own = err == nil
	return err
}

// goRoot is the folder of a Go release: the machine's own, where it is of that version, else one downloaded once for
// the batch.
func (b *Batch) goRoot(ctx context.Context, goCommand, version string, log buildLog) (string, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if folder, ok := b.goRoots[version]; ok {
		return folder, nil
	}
	command := exec.CommandContext(ctx, goCommand, "env", "GOROOT")
	command.Dir = b.scratch
	command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=go"+version, "GOMODCACHE="+filepath.Join(b.scratch, "toolchains"))
	folder, err := log.output(command)
	if err != nil {
		return "", fmt.Errorf("the Go toolchain %s: %w", version, err)
	}
	b.goRoots[version] = strings.TrimSpace(folder)
	return b.goRoots[version], nil
}

// majorVersion is the last element of a module's path from its second major version on.
var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// programName is what the go command calls the program of a package.
func programName(pkg string) string {
	name := path.Base(pkg)
	if majorVersion.MatchString(name) {
		name = path.Base(path.Dir(pkg))
	}
	return name
}
