package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// Epoch is the time of every file in a root, in seconds since 1970: 2020-01-01T00:00:00Z. A constant, so that the
	// same packages give the same bytes on another day.
	Epoch = 1577836800

	// DefaultSuite is the release that roots are made of where Options names none.
	DefaultSuite = "bookworm"
)

// Options are what a root may be told beyond its packages.
type Options struct {
	Suite string    // code name of the release; "" means DefaultSuite
	Log   io.Writer // mmdebstrap's own progress lines; nil discards them
}

// Root writes a tar of a Debian root file system to dest: the essential packages, apt, and the named packages with
// what they depend on (nothing that is only recommended), for the host's architecture. Documentation, translations,
// logs, caches, device nodes and everything of the host are left out; two calls with the same package versions in the
// archive write the same bytes. It returns the version of every installed package.
//
// It takes about 20 to 30 seconds, uses the host's Debian mirrors and needs root; an *UnfitError says what is missing.
// A deadline is the caller's, by ctx; a cancelled call leaves no dest and no mounts.
func Root(ctx context.Context, dest string, packages []string, opts Options) (map[string]string, error) {
	host := thisHost()
	if problems := host.unfitForRoot(); len(problems) > 0 {
		return nil, &UnfitError{Doing: "make a Debian root", Problems: problems}
	}
	suite := opts.Suite
	if suite == "" {
		suite = DefaultSuite
	}
	partial, err := os.CreateTemp(filepath.Dir(dest), filepath.Base(dest)+".*.partial")
	if err != nil {
		return nil, fmt.Errorf("make a Debian root: %w", err)
	}
	defer os.Remove(partial.Name())
	defer partial.Close()

	work, err := workFolder(filepath.Dir(dest))
	if err != nil {
		return nil, fmt.Errorf("make a Debian root: %w", err)
	}
	defer os.RemoveAll(work)
	versions, err := mmdebstrap(ctx, partial, work, suite, packages, host.sources(suite), opts.Log)
	if err != nil {
		return nil, fmt.Errorf("make a Debian root with %s: %w", strings.Join(packages, ", "), err)
	}
	if err := errors.Join(partial.Chmod(0o644), partial.Close(), os.Rename(partial.Name(), dest)); err != nil {
		return nil, fmt.Errorf("make a Debian root: %w", err)
	}
	return versions, nil
}

// workFolder makes the folder in which the root is put together: on the disk of the result, since /tmp may be small and
// in memory, and open to apt's own user, which downloads.
func workFolder(parent string) (string, error) {
	work, err := os.MkdirTemp(parent, ".root-*")
	if err != nil {
		return "", err
	}
	return work, os.Chmod(work, 0o755)
}

// mmdebstrap runs the program of that name in the folder work and writes what it makes, normalised, to w.
func mmdebstrap(ctx context.Context, w io.Writer, work, suite string, packages, sources []string, log io.Writer) (map[string]string, error) {
	apt, err := aptSettings(ctx)
	if err != nil {
		return nil, err
	}
	// usr-is-merged instead of usrmerge, which would bring the whole of Perl; it asks for a root that is merged from
	// the start, which is what the hook does.
	include := append([]string{"usr-is-merged"}, packages...)
	arguments := []string{
		"--mode=root", "--variant=minbase", "--format=tar",
		"--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
		"--include=" + strings.Join(include, ","),
		"--dpkgopt=force-unsafe-io", // a root cut off by a power cut is not kept, so nothing needs to be synced
		"--dpkgopt=path-exclude=/usr/share/man/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*",
		"--dpkgopt=path-exclude=/usr/share/info/*",
		"--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-include=/usr/share/doc/*/copyright",
	}
	if len(apt) > 0 {
		// In a file, not on the command line: a proxy's address may hold a password. The normalisation drops the
		// copy that mmdebstrap keeps in the root.
		file := filepath.Join(work, "apt.conf")
		if err := os.WriteFile(file, []byte(strings.Join(apt, "\n")+"\n"), 0o600); err != nil {
			return nil, err
		}
		arguments = append(arguments, "--aptopt="+file)
	}
	arguments = append(append(arguments, suite, "-"), sources...)

	var said bytes.Buffer
	command := exec.CommandContext(ctx, "mmdebstrap", arguments...)
	command.Env = append(os.Environ(), "TMPDIR="+work, "SOURCE_DATE_EPOCH="+strconv.Itoa(Epoch), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
	command.Stderr = &said
	if log != nil {
		command.Stderr = io.MultiWriter(&said, log)
	}
	// A process group of its own lets a cancelled call end its children too.
	command.SysProcAttr = ownMounts()
	command.SysProcAttr.Setpgid = true
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = 30 * time.Second
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	versions, tarErr := normalise(output, w)
	if tarErr != nil {
		// Nobody reads on: let mmdebstrap write to its end, so that its own error, if any, is not a broken pipe.
		_, _ = io.Copy(io.Discard, output)
	}
	if err := command.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("mmdebstrap: %w: %s", err, lastLines(said.String(), 6))
	}
	if tarErr != nil {
		return nil, tarErr
	}
	return versions, nil
}

// carried are apt's settings without which the host's mirrors may not be reached or not be accepted.
var carried = []string{
	"Acquire::http::Proxy", "Acquire::https::Proxy", "Acquire::https::CAInfo", "Acquire::https::CaInfo",
	"Acquire::Check-Valid-Until", "Acquire::Check-Date", "Acquire::Retries",
}

func aptSettings(ctx context.Context) ([]string, error) {
	output, err := exec.CommandContext(ctx, "apt-config", "dump", "Acquire").Output()
	if err != nil {
		return nil, fmt.Errorf("apt-config dump: %w", err)
	}
	var kept []string
	for line := range strings.Lines(string(output)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if slices.Contains(carried, name) && value != `"";` {
			kept = append(kept, name+" "+value)
		}
	}
	return kept, nil
}

// lastLines gives the last n lines that say something, in one line.
func lastLines(text string, n int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], " / ")
}
