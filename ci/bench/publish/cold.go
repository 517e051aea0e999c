package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/test/release"
)

// measureCold publishes this repository's blog with an engine that is new: no module, no program and no image is cached.
// It is what a hosted runner meets at each call, but for the way to the images' registries; here a mirror on the same
// machine has them. The tables say where the time goes: where castle is compiled, where an image has its programs, and where
// a release names that image and the blog is a repository of its own, with the castle.yaml of examples/blog. Each is measured
// with an engine of its own, since emptying an engine's cache does not make it forget what it has in memory.
func measureCold(ctx context.Context, o options) error {
	alone := ownBlog(o)
	alone.path = "."
	alone.write = func(ctx context.Context, dir string) error {
		_, err := git.Runner{Dir: dir}.Run(ctx, "init", "--quiet", "--initial-branch=main")
		return errors.Join(err, copyBlog(o.root, dir))
	}
	for _, c := range []struct {
		title string
		site
		prepare func(context.Context, *workshop) error
	}{
		{"compiling castle", ownBlog(o), func(context.Context, *workshop) error { return nil }},
		{"with castle's image", ownBlog(o), func(ctx context.Context, w *workshop) (err error) {
			w.castle, err = w.publishCastle(ctx)
			return err
		}},
		{"the blog of examples/blog, by a release", alone, func(ctx context.Context, w *workshop) error { return w.release(ctx) }},
	} {
		if err := publishCold(ctx, o, c.title, c.site, c.prepare); err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
	}
	return nil
}

func publishCold(ctx context.Context, o options, title string, s site, prepare func(context.Context, *workshop) error) (err error) {
	w, err := newWorkshop(ctx, o, s)
	if err != nil {
		return err
	}
	defer w.close()
	if err := prepare(ctx, w); err != nil {
		return err
	}
	if err := w.commit(ctx, "Write the site"); err != nil {
		return err
	}
	stop, err := w.newEngine(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	start := time.Now()
	result, err := w.publish(ctx)
	if err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	fmt.Printf("| new engine, %s: step | time |\n|---|---:|\n", title)
	fmt.Printf("| load the module | %.1f s |\n", took-result.Seconds)
	for _, step := range result.Steps {
		fmt.Printf("| %s | %.1f s |\n", step.Name, step.Seconds)
	}
	fmt.Printf("| in all | %.1f s |\n\n", took)
	return nil
}

// publishCastle publishes an image with castle's programs, and returns its name with its digest.
func (w *workshop) publishCastle(ctx context.Context) (string, error) {
	published, err := w.output(ctx, w.root, nil, "dagger", "call", "--quiet", "image", "publish", "--address="+w.registryAddress+"/bench/castle:v0")
	return strings.TrimSpace(string(published)), err
}

// release makes a module that names a published image, and the settings of the blog that it publishes.
func (w *workshop) release(ctx context.Context) error {
	published, err := w.publishCastle(ctx)
	if err != nil {
		return err
	}
	root, err := filepath.Abs(w.root)
	if err != nil {
		return err
	}
	w.module = filepath.Join(w.dir, "castle")
	if _, err := (git.Runner{Dir: w.dir}).Run(ctx, "clone", "--quiet", "--depth=1", "file://"+root, w.module); err != nil {
		return err
	}
	// What this machine has in place of images is in no commit.
	local, err := os.ReadFile(filepath.Join(w.root, ".dagger", "images.local.yaml"))
	if err == nil {
		err = os.WriteFile(filepath.Join(w.module, ".dagger", "images.local.yaml"), local, 0o644)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	if err := release.NameImage(w.module, published); err != nil {
		return err
	}
	text, err := release.Blog{GitOps: w.gitOps(), Manifest: manifestPath, Image: w.image(), User: "bench"}.Settings(w.root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.source(), "castle.yaml"), []byte(text), 0o644)
}

// newEngine starts an engine with an empty cache for the calls that follow; of the cache folder that is ready it has the
// programs and the mirror.
func (w *workshop) newEngine(ctx context.Context) (stop func() error, err error) {
	cache := filepath.Join(w.dir, "cache")
	if err := os.Mkdir(cache, 0o755); err != nil {
		return nil, err
	}
	ready, err := filepath.Abs(w.cache)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"tools", "mirror"} {
		if err := os.Symlink(filepath.Join(ready, name), filepath.Join(cache, name)); err != nil {
			return nil, err
		}
	}
	status, err := w.output(ctx, w.root, nil, w.hostProgram, "engine", "up", "--cache="+cache)
	if err != nil {
		return nil, err
	}
	stop = func() error {
		return w.run(context.WithoutCancel(ctx), w.root, nil, w.hostProgram, "engine", "down", "--cache="+cache)
	}
	for line := range strings.Lines(string(status)) {
		if name, host, _ := strings.Cut(strings.TrimSpace(line), " "); name == "host" {
			w.engine = strings.TrimSpace(host)
			return stop, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("castle engine up did not say how to reach it:\n%s", status), stop())
}
