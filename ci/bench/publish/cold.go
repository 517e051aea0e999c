package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// measureCold publishes this repository's blog with an engine that has nothing cached: no module, no program, no image. It
// is what a hosted runner meets at each call, but for the way to the images' registries; here a mirror on the same machine
// has them. The table says where the time goes.
func measureCold(ctx context.Context, o options) error {
	w, err := newWorkshop(ctx, o, ownBlog(o))
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.commit(ctx, "Write the site"); err != nil {
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
	if result.Image.AlreadyThere {
		return errors.New("the registry had the image already: that was not the first publish")
	}
	fmt.Println("| cold, step | time |\n|---|---:|")
	fmt.Printf("| load the module | %.1f s |\n", took-result.Seconds)
	for _, step := range result.Steps {
		fmt.Printf("| %s | %.1f s |\n", step.Name, step.Seconds)
	}
	fmt.Printf("| in all | %.1f s |\n", took)
	return nil
}
