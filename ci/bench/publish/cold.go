package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// measureCold publishes this repository's blog with an engine that is new: no module, no program and no image is cached.
// It is what a hosted runner meets at each call, but for the way to the images' registries; here a mirror on the same
// machine has them. The tables say where the time goes: first where castle is compiled, then where an image has its
// programs, as a release names one. Each is measured with an engine of its own, since emptying an engine's cache does not
// make it forget what it has in memory.
func measureCold(ctx context.Context, o options) error {
	for _, released := range []bool{false, true} {
		if err := publishCold(ctx, o, released); err != nil {
			return err
		}
	}
	return nil
}

func publishCold(ctx context.Context, o options, released bool) (err error) {
	w, err := newWorkshop(ctx, o, ownBlog(o))
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.commit(ctx, "Write the site"); err != nil {
		return err
	}
	title := "compiling castle"
	if released {
		title = "with castle's image"
		address := w.registryAddress + "/bench/castle:v0"
		published, err := w.output(ctx, w.root, nil, "dagger", "call", "--quiet", "image", "publish", "--address="+address)
		if err != nil {
			return err
		}
		w.castle = strings.TrimSpace(string(published))
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
