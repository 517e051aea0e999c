package realsites

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The themes' versions and checksums. The suffix keeps the go command from taking the folder for a module of ours.
//
//go:embed themes/go.mod.in themes/go.sum.in
var themes embed.FS

// downloadTimeout bounds the download of one theme; the largest has some 50 MB.
const downloadTimeout = 5 * time.Minute

// theme returns the folder of a module in the module cache, which is read-only, after downloading it where it is missing.
func (t *tree) theme(module string) (dir string, err error) {
	work, err := os.MkdirTemp("", "castle-themes-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := themes.ReadFile("themes/" + name + ".in")
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(work, name), text, 0o644); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(t.ctx, downloadTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	command.Dir = work
	command.Env = append(os.Environ(), "PWD="+work, "GOWORK=off", "GOFLAGS=-mod=mod")
	output, runErr := command.Output()
	var answer struct{ Dir, Error string }
	if err := json.Unmarshal(output, &answer); err != nil || answer.Dir == "" {
		return "", fmt.Errorf("download the theme %s: %w %s", module, errors.Join(runErr, err), strings.TrimSpace(answer.Error))
	}
	return answer.Dir, nil
}
