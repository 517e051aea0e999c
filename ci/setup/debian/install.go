package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// installDeadline bounds Install where the caller's context has no deadline of its own.
const installDeadline = 10 * time.Minute

// Install installs those of the packages that the host lacks, without what they only recommend; with none lacking it
// changes nothing and needs no rights. An *UnfitError names the command to run where the caller may not install.
func Install(ctx context.Context, packages ...string) error { return thisHost().install(ctx, packages) }

func (h host) install(ctx context.Context, packages []string) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, installDeadline)
		defer cancel()
	}
	missing, err := missing(ctx, packages)
	if err != nil || len(missing) == 0 {
		return err
	}
	names := strings.Join(missing, " ")
	if problems := h.unfitForPackages(); len(problems) > 0 {
		problems = append(problems, "install them once with: sudo apt-get install --no-install-recommends "+names)
		return &UnfitError{Doing: "install the Debian packages " + names, Problems: problems}
	}
	arguments := append([]string{"install", "--yes", "--no-install-recommends"}, missing...)
	first := aptGet(ctx, arguments...)
	if first == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("install the Debian packages %s: %w", names, context.Cause(ctx))
	}
	// The lists may be missing or name versions that the mirror no longer has: fetch them, then once more. One broken
	// repository of a third party fails the update without mattering here, so only the second install decides.
	update := aptGet(ctx, "update")
	if err := aptGet(ctx, arguments...); err != nil {
		return fmt.Errorf("install the Debian packages %s: %w", names, errors.Join(err, update))
	}
	return nil
}

// missing asks dpkg which packages are not installed.
func missing(ctx context.Context, packages []string) ([]string, error) {
	if len(packages) == 0 {
		return nil, nil
	}
	// It exits 1 when it does not know one of them and still tells of the others.
	output, err := exec.CommandContext(ctx, "dpkg-query", append([]string{"--show", "--showformat=${Package} ${db:Status-Status}\n"}, packages...)...).Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, &UnfitError{Doing: "install the Debian packages " + strings.Join(packages, " "),
				Problems: []string{"this is not Debian or a system derived from it (dpkg-query is missing)"}}
		}
		return nil, fmt.Errorf("ask dpkg for installed packages: %w", err)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("ask dpkg for installed packages: %w", context.Cause(ctx))
	}
	there := map[string]bool{}
	for line := range strings.Lines(string(output)) {
		if name, state, _ := strings.Cut(strings.TrimSpace(line), " "); state == "installed" {
			there[name] = true
		}
	}
	var lacking []string
	for _, name := range packages {
		if !there[name] {
			lacking = append(lacking, name)
		}
	}
	return lacking, nil
}

func aptGet(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, "apt-get", append([]string{"-o", "DPkg::Lock::Timeout=120", "-q"}, arguments...)...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
	// Asked, not killed: dpkg amid a package leaves a database that needs repair.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = time.Minute
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", arguments[0], err, lastLines(string(output), 6))
	}
	return nil
}
