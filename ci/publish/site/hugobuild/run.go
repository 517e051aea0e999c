package hugobuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"tazlab.net/castle/ci/base/offline"
)

// command is one run of a program of the image.
type command struct {
	timeout time.Duration
	name    string
	args    []string
	dir     string
	env     []string  // beside this process's own
	only    []string  // instead of both
	offline bool      // without a network
	log     io.Writer // gets all that it says as well; nil for none
}

// failure is the end of a program that ran and was not content.
type failure struct {
	name string
	err  error
}

func (f *failure) Error() string { return f.name + ": " + f.err.Error() }

// run returns all that the program said; an error of its own is a *failure.
func run(ctx context.Context, c command) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("%s did not end within %s", c.name, c.timeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	start := cmd.Start
	if c.only != nil {
		cmd.Env = c.only
	}
	if c.offline {
		start = func() error { return offline.Start(cmd) }
	}
	var said bytes.Buffer
	cmd.Stdout = &said
	if c.log != nil {
		cmd.Stdout = io.MultiWriter(&said, c.log)
	}
	cmd.Stderr = cmd.Stdout
	// What it started ends with it: git of a module's download, node of a style sheet.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := start()
	if err == nil {
		err = cmd.Wait()
	}
	switch {
	case ctx.Err() != nil:
		return said.String(), context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s is not on PATH: this runs in the Hugo image", c.name)
	case err != nil:
		return said.String(), &failure{name: strings.Join(append([]string{c.name}, c.args...), " "), err: err}
	}
	return said.String(), nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
