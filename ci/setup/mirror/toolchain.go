package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
)

// goVersion is what a tag of the golang image starts with.
var goVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+`)

// goToolchain gives the folder of a Go release for Linux, such as "1.26.4", out of the module proxy: the go command's
// own way to other toolchains, checked against the checksum database. The folder is part of the module cache and read-only.
func goToolchain(ctx context.Context, version, arch string) (string, error) {
	module := "golang.org/toolchain@v0.0.1-go" + version + ".linux-" + arch
	// In an empty folder: the go.mod of wherever castle runs has no say.
	empty, err := os.MkdirTemp("", "castle-toolchain-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(empty)
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	command.Dir = empty
	command.Env = append(os.Environ(), "PWD="+empty, "GOWORK=off", "GOFLAGS=", "GOTOOLCHAIN=local")
	var output, said bytes.Buffer
	command.Stdout, command.Stderr = &output, &said
	runErr := command.Run()
	if errors.Is(runErr, exec.ErrNotFound) {
		return "", errors.New("the go command is missing: it fetches the toolchain of the golang stand-in; install Go and put it on PATH")
	}
	var answer struct{ Dir, Error string }
	if err := json.Unmarshal(output.Bytes(), &answer); err != nil || answer.Dir == "" {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("download %s: %w: %s", module, errors.Join(runErr, err), strings.TrimSpace(answer.Error+" "+said.String()))
	}
	return answer.Dir, nil
}

// goFile says where a file of a Go release out of the module cache goes and what its mode is. A module's zip does not
// tell which files are executable, and cannot hold a go.mod of another module, so that each comes as _go.mod; a go command
// that has run from the folder left a copy with the right name beside it. The rules are those of cmd/go/internal/toolchain.
func goFile(file string) (string, int64) {
	folder, base := path.Split(file)
	executable, _ := path.Match("go_?*_?*_exec", base)
	executable = executable && strings.HasPrefix(file, "lib/")
	switch {
	case base == "go.mod":
		return "", 0
	case base == "_go.mod":
		return folder + "go.mod", 0o644
	case executable, strings.HasPrefix(file, "bin/"), strings.HasPrefix(file, "pkg/tool/"):
		return file, 0o755
	default:
		return file, 0o644
	}
}
