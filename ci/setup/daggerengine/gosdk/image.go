// Package gosdk makes the image in which the engine compiles modules that are written in Go. As in the official engine (dagger v0.19.10,
// toolchains/engine-dev/build/sdk.go), a Go toolchain and the SDK's code generator are in it, and beside them what the compiler
// has made of the standard library and of the SDK's own dependencies: the engine begins its caches of Go modules with that, so that the
// first call of a module does not compile it.
package gosdk

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Where the engine mounts its caches, over what the image has there.
const (
	modules  = "go/pkg/mod"
	compiled = "root/.cache/go-build"
)

// variables are what commands in the image run with. Nothing of a cache fits a compiler with others.
var variables = []string{"GOPATH=/go", "GOTOOLCHAIN=local", "CGO_ENABLED=0"}

// Image puts the code generator, a program on this machine, and the layer of Caches on top of a Go toolchain's image.
func Image(base v1.Image, codegen string, caches v1.Layer) (v1.Image, error) {
	generator, err := generatorLayer(codegen)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(base, generator, caches)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Config.Entrypoint, config.Config.Cmd = nil, nil
	config.Config.Env = withVariables(config.Config.Env)
	return mutate.ConfigFile(image, config)
}

func generatorLayer(codegen string) (v1.Layer, error) {
	program, err := os.ReadFile(codegen)
	if err != nil {
		return nil, fmt.Errorf("the SDK's code generator: %w", err)
	}
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	if err := writer.WriteHeader(&tar.Header{Name: "usr/local/bin/codegen", Mode: 0o755, Size: int64(len(program))}); err != nil {
		return nil, err
	}
	if _, err := writer.Write(program); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	})
}

// withVariables sets the variables in an environment, in place of those of the same names.
func withVariables(environment []string) []string {
	set := slices.Clone(environment)
	for _, variable := range variables {
		name, _, _ := strings.Cut(variable, "=")
		set = slices.DeleteFunc(set, func(other string) bool { return strings.HasPrefix(other, name+"=") })
	}
	return append(set, variables...)
}
