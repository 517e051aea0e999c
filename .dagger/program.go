package main

import (
	"path"
	"slices"
	"strings"
	"time"

	"dagger/castle/internal/dagger"
)

// The programs that run in castle's containers; each is a folder of ci/cmd.
const (
	publishProgram = "castle-publish"
	clusterProgram = "castle-cluster"
	sandboxProgram = "castle-sandbox"
	gitopsProgram  = "castle-gitops"
	releaseProgram = "castle-release"
)

// released are the programs that an image of castle holds.
var released = []string{publishProgram, clusterProgram, gitopsProgram}

const programFolder = "/usr/local/bin/"

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

// Image is an image with the programs in it that publishing and clusters need,
// for --castle: what uses it compiles nothing. castle-sandbox is not in it: the
// first call on a sandbox compiles it.
func (m *Castle) Image(
	// The platform. Default: the engine's own.
	// +optional
	platform dagger.Platform,
) (*dagger.Container, error) {
	image, err := m.image("golang", platform)
	if err != nil {
		return nil, err
	}
	image = image.WithoutWorkdir()
	for _, program := range released {
		file, err := m.compile(program, platform)
		if err != nil {
			return nil, err
		}
		image = image.WithFile(programFolder+program, file)
	}
	return image.WithDirectory(releasedLayers, m.layers()), nil
}

// buildQuietly calls go build, and shows what it says but for the hundreds of lines of what is downloaded.
const buildQuietly = `log=$(mktemp) && { go build "$@" 2>"$log"; code=$?; grep -v "^go: downloading " "$log" >&2; exit $code; }`

// compile makes one of the programs, or takes it from the released image. What a
// debugger would read is not even made: that is a seventh of the compiler's work.
func (m *Castle) compile(program string, platform dagger.Platform) (*dagger.File, error) {
	if m.Released != nil && platform == "" && slices.Contains(released, program) {
		return m.Released.File(programFolder + program), nil
	}
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
		WithMountedDirectory("/src", m.sources(program)).
		WithWorkdir("/src").
		WithEnvVariable("CGO_ENABLED", "0").
		WithExec([]string{"sh", "-c", buildQuietly, "go", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o", "/program", "./ci/cmd/" + program}).
		File("/program"), nil
}

// rooms are the folders of ci that a program is made of; ci/imports_test.go
// holds that they are enough. What else changes compiles nothing anew.
var rooms = map[string][]string{
	publishProgram: {"base", "publish", "cmd/cli"},
	clusterProgram: {"base", "publish", "cluster", "cmd/cli"},
	sandboxProgram: {"base", "cluster", "sandbox"},
	releaseProgram: {"base", "publish", "release", "cmd/cli"},
	gitopsProgram:  {"base", "cluster/config", "gitops", "cmd/cli", "../gitops-template"},
}

// sources are what a program is compiled from.
func (m *Castle) sources(program string) *dagger.Directory {
	folders, known := rooms[program]
	if !known { // castle itself, which needs all
		return dag.Directory().WithDirectory("/", m.Self, dagger.DirectoryWithDirectoryOpts{Include: []string{"go.mod", "go.sum", "ci", "gitops-template"}})
	}
	include := []string{"go.mod", "go.sum", "ci/cmd/" + program}
	for _, folder := range folders {
		include = append(include, path.Join("ci", folder))
	}
	return dag.Directory().WithDirectory("/", m.Self, dagger.DirectoryWithDirectoryOpts{Include: include})
}

// with puts a program where a container's commands are looked for.
func (m *Castle) with(program string, container *dagger.Container) (*dagger.Container, error) {
	file, err := m.compile(program, "")
	if err != nil {
		return nil, err
	}
	return container.WithMountedFile(programFolder+program, file), nil
}

// container has a program, Git and OpenSSH.
func (m *Castle) container(program string) (*dagger.Container, error) {
	if m.Released != nil && slices.Contains(released, program) {
		return m.Released.WithoutEntrypoint().WithUser("root").WithoutWorkdir(), nil
	}
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
