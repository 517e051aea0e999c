package main

import (
	"strings"
	"time"

	"dagger/castle/internal/dagger"
)

// The programs that run in castle's containers; each is a folder of ci/cmd.
const (
	publishProgram = "castle-publish"
	clusterProgram = "castle-cluster"
	sandboxProgram = "castle-sandbox"
)

// Program is castle's program for the machine that calls the module: set-up,
// mirror and demo.
func (m *Castle) Program(
	// What to compile it for, such as darwin/arm64. Default: the engine's own
	// platform.
	// +optional
	platform dagger.Platform,
) (*dagger.File, error) {
	return m.compile("castle", platform)
}

// compile makes one of the programs.
func (m *Castle) compile(program string, platform dagger.Platform) (*dagger.File, error) {
	golang, err := m.image("golang", "")
	if err != nil {
		return nil, err
	}
	if system, architecture, found := strings.Cut(string(platform), "/"); found {
		golang = golang.WithEnvVariable("GOOS", system).WithEnvVariable("GOARCH", architecture)
	}
	return golang.
		WithMountedCache("/go/pkg/mod", dag.CacheVolume("castle-go-mod")).
		WithMountedCache("/root/.cache/go-build", dag.CacheVolume("castle-go-build")).
		WithMountedDirectory("/src", m.Self).
		WithWorkdir("/src").
		WithEnvVariable("CGO_ENABLED", "0").
		WithExec([]string{"go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "/program", "./ci/cmd/" + program}).
		File("/program"), nil
}

// with puts a program where a container's commands are looked for.
func (m *Castle) with(program string, container *dagger.Container) (*dagger.Container, error) {
	file, err := m.compile(program, "")
	if err != nil {
		return nil, err
	}
	return container.WithMountedFile("/usr/local/bin/"+program, file), nil
}

// container has a program, Git and OpenSSH.
func (m *Castle) container(program string) (*dagger.Container, error) {
	golang, err := m.image("golang", "")
	if err != nil {
		return nil, err
	}
	return m.with(program, golang.WithoutWorkdir())
}

// uncached makes the commands that follow run every time: the cache pragma of
// a function does not reach the layers below it.
func uncached(container *dagger.Container) *dagger.Container {
	return container.WithEnvVariable("CASTLE_RUN", time.Now().UTC().Format(time.RFC3339Nano))
}
