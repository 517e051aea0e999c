package main

import (
	"context"
	"path"
	"time"

	"dagger/castle/internal/dagger"
)

// handoverMount is where two containers that run at the same time have one
// folder in common.
const handoverMount = "/handover"

// beside runs a command of castle-publish and, from the beginning, what waits
// for its result: a container's start and the way into a cluster would take a
// second of the time in which Flux could be at work already. wait gets the
// folder of both, and the flag that names the result in it. What nothing was
// published for is not waited for.
func beside(ctx context.Context, container *dagger.Container, args []string,
	wait func(ctx context.Context, mount dagger.WithContainerFunc, published string) error) error {
	file := path.Join(handoverMount, time.Now().UTC().Format(time.RFC3339Nano)+".json")
	mount := func(container *dagger.Container) *dagger.Container {
		return container.WithMountedCache(handoverMount, dag.CacheVolume("castle-handover"))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	waited := make(chan error, 1)
	go func() { waited <- wait(ctx, mount, "--published="+file) }()
	if _, err := uncached(container).With(mount).WithExec(append(args, "--result="+file)).Sync(ctx); err != nil {
		stop()
		<-waited
		return plain(err)
	}
	return <-waited
}
