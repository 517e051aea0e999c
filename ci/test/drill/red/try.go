package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// What becomes of a test whose castle was spoilt.
const (
	wasRed   = "red"
	wasGreen = "NOT NOTICED"
	neverRan = "DID NOT RUN" // it was skipped, it lacked something, or the change does not even compile
)

// shown is a spoil and what the test made of it.
type shown struct {
	spoil
	outcome string
	took    time.Duration
	output  string
}

// workTree is a clone with the repository's uncommitted changes in it.
type workTree struct{ folder string }

func clone(ctx context.Context, root string) (w workTree, err error) {
	if w.folder, err = os.MkdirTemp("", "castle-red-"); err != nil {
		return w, err
	}
	if err := w.fill(ctx, root); err != nil {
		w.remove()
		return w, err
	}
	return w, nil
}

func (w workTree) remove() { _ = os.RemoveAll(w.folder) }

func (w workTree) fill(ctx context.Context, root string) error {
	if err := git(ctx, ".", nil, "clone", "--quiet", root, w.folder); err != nil {
		return err
	}
	changes, err := exec.CommandContext(ctx, "git", "-C", root, "diff", "--binary", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("git diff: %w", err)
	}
	if len(changes) > 0 {
		if err := git(ctx, w.folder, changes, "apply"); err != nil {
			return err
		}
	}
	untracked, err := exec.CommandContext(ctx, "git", "-C", root, "ls-files", "-z", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	// The last one is ignored by Git, and what the module pulls here.
	for _, name := range append(strings.Split(string(untracked), "\x00"), ".dagger/images.local.yaml") {
		if err := w.take(root, filepath.FromSlash(name)); err != nil {
			return err
		}
	}
	if err := git(ctx, w.folder, nil, "add", "--all"); err != nil {
		return err
	}
	return w.commit(ctx)
}

// take copies a file that may be there.
func (w workTree) take(root, name string) error {
	from, to := filepath.Join(root, name), filepath.Join(w.folder, name)
	info, err := os.Stat(from)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, data, info.Mode())
	}
	return err
}

// commit leaves the tree clean, which tests of publishing ask for.
func (w workTree) commit(ctx context.Context) error {
	return git(ctx, w.folder, nil, "-c", "user.name=red", "-c", "user.email=red@localhost", "commit", "--quiet", "--all", "--allow-empty", "--message=spoilt")
}

func git(ctx context.Context, folder string, input []byte, args ...string) error {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir, command.Stdin = folder, bytes.NewReader(input)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, output)
	}
	return nil
}

// deadline bounds a test; those of worlds take a few minutes.
const deadline = 15 * time.Minute

// try spoils the clone, runs the test, and mends the clone.
func (w workTree) try(ctx context.Context, s spoil) (shown, error) {
	if err := s.apply(w.folder); err != nil {
		return shown{}, err
	}
	if err := w.commit(ctx); err != nil {
		return shown{}, err
	}
	began := time.Now()
	command := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-v", "-timeout="+deadline.String(), "-run=^"+s.Test.Name+"$", "./ci/"+s.Test.Package)
	command.Dir = w.folder
	command.Env = append(os.Environ(), "CASTLE_E2E=1", "CASTLE_REQUIRE_ALL=1")
	// What go test has started ends in order, worlds and engines included.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return shown{}, ctx.Err()
	}
	one := shown{spoil: s, outcome: judge(s.Test.Name, string(output), err == nil), took: time.Since(began), output: string(output)}
	return one, git(ctx, w.folder, nil, "reset", "--quiet", "--hard", "HEAD~1")
}

// lacking is what ci/test/needs says, where all tests are required, of a test that lacks something, such as a tool that is not built or a
// program of castle's that does not compile.
const lacking = "CASTLE_REQUIRE_ALL is set, and the test cannot run: "

// judge reads what `go test -v` said of a test.
func judge(name, output string, passed bool) string {
	switch {
	case !strings.Contains(output, "=== RUN   "+name+"\n"), strings.Contains(output, "--- SKIP: "+name+" "), strings.Contains(output, lacking):
		return neverRan
	case passed:
		return wasGreen
	default:
		return wasRed
	}
}
