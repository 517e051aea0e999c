package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/publish/report"
)

// measureCold publishes this repository's blog with an engine that has nothing cached: no module, no program, no image. It
// is what a hosted runner meets at each call, but for the way to the images' registries; here a mirror on the same machine
// has them. The tables say where the time goes: first where castle is compiled, then where an image has its programs, as a
// release names one. The engine must run on this machine, since it pulls that image from a loopback address.
func measureCold(ctx context.Context, o options) error {
	w, err := newWorkshop(ctx, o, ownBlog(o))
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.publishCold(ctx, "compiling castle"); err != nil {
		return err
	}
	published, err := w.output(ctx, w.root, nil, "dagger", "call", "--quiet", "image", "publish", "--address="+w.registryAddress+"/bench/castle:v0")
	if err != nil {
		return err
	}
	w.castle = strings.TrimSpace(string(published))
	return w.publishCold(ctx, "with castle's image")
}

// publishCold empties the engine's cache, publishes, and prints where the time went.
func (w *workshop) publishCold(ctx context.Context, title string) error {
	if err := w.commit(ctx, "Publish "+title); err != nil {
		return err
	}
	if err := w.run(ctx, w.root, nil, "dagger", "core", "--quiet", "engine", "local-cache", "prune"); err != nil {
		return err
	}
	start := time.Now()
	result, err := w.publish(ctx)
	if err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	// Emptying its cache does not make an engine forget what it has in memory.
	if i := slices.IndexFunc(result.Steps, func(step report.Step) bool { return step.Name == "compile castle" }); w.castle == "" && (i < 0 || result.Steps[i].Seconds < 1) {
		return errors.New("the engine had castle compiled already: measure with one that is new, `castle engine up --cache=FOLDER`")
	}
	if result.Image.AlreadyThere {
		return errors.New("the registry had the image already: that was not the first publish")
	}
	fmt.Printf("| cold, %s: step | time |\n|---|---:|\n", title)
	fmt.Printf("| load the module | %.1f s |\n", took-result.Seconds)
	for _, step := range result.Steps {
		fmt.Printf("| %s | %.1f s |\n", step.Name, step.Seconds)
	}
	fmt.Printf("| in all | %.1f s |\n\n", took)
	return nil
}
