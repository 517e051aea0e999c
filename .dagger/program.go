package main

import (
	"strings"
	"time"

	"dagger/castle/internal/dagger"
)

// Program is castle's own program.
func (m *Castle) Program(
	// What to compile it for, such as darwin/arm64. Default: the engine's own
	// platform.
	// +optional
	platform dagger.Platform,
) (*dagger.File, error) {
	return m.program(platform, "./ci/cmd/castle")
}

// program compiles one of the commands.
func (m *Castle) program(platform dagger.Platform, command string) (*dagger.File, error) {
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
		WithExec([]string{"go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "/program", command}).
		File("/program"), nil
}

// castle is a container with the program, Git and OpenSSH.
func (m *Castle) castle() (*dagger.Container, error) {
	program, err := m.Program("")
	if err != nil {
		return nil, err
	}
	golang, err := m.image("golang", "")
	if err != nil {
		return nil, err
	}
	return golang.
		WithoutWorkdir().
		WithMountedFile("/usr/local/bin/castle", program), nil
}

// uncached makes the commands that follow run every time: the cache pragma of
// a function does not reach the layers below it.
func uncached(container *dagger.Container) *dagger.Container {
	return container.WithEnvVariable("CASTLE_RUN", time.Now().UTC().Format(time.RFC3339Nano))
}
