package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/test/drill/stories"
)

// step is one call of `go test`.
type step struct {
	name     string
	packages []string // folders below ci
	tests    []string // nil: all of these packages
	flags    []string
	env      []string
}

// steps are those that play the stories; whole says that all scenarios are, which may be more than the stories name.
func steps(all []stories.Story, whole bool) []step {
	quick := step{name: "what needs no world", flags: []string{"-timeout=20m"}}
	worlds := step{name: "the scenarios of the proving ground", packages: []string{stories.Scenarios}, flags: []string{"-timeout=90m", "-parallel=3"}}
	engine := step{name: "the end-to-end tests, on an engine", packages: []string{stories.EndToEnd}, flags: []string{"-timeout=60m"}, env: []string{"CASTLE_E2E=1"}}
	for _, story := range all {
		for _, test := range story.Tests {
			of := &quick
			switch test.Package {
			case stories.Scenarios:
				of = &worlds
			case stories.EndToEnd:
				of = &engine
			}
			if !slices.Contains(of.packages, test.Package) {
				of.packages = append(of.packages, test.Package)
			}
			if !slices.Contains(of.tests, test.Name) {
				of.tests = append(of.tests, test.Name)
			}
		}
	}
	var list []step
	for _, s := range []step{quick, worlds, engine} {
		if len(s.tests) > 0 {
			list = append(list, s)
		}
	}
	if whole {
		for i := range list {
			if list[i].name == worlds.name {
				list[i].tests = nil
			}
		}
	}
	return list
}

// event is one of `go test -json` (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// run calls `go test` and hands every event on; the end of each test is told meanwhile. That a test fails is no error.
func (s step) run(ctx context.Context, root string, out io.Writer, each func(event)) error {
	args := append([]string{"test", "-json", "-vet=off", "-count=1"}, s.flags...)
	if len(s.tests) > 0 {
		args = append(args, "-run=^("+strings.Join(s.tests, "|")+")$")
	}
	for _, folder := range s.packages {
		args = append(args, "./ci/"+folder)
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Stderr = root, out
	command.Env = append(os.Environ(), s.env...)
	// What go test has started ends in order, worlds and engines included.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	events, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(events)
	for {
		var e event
		if err := decoder.Decode(&e); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return errors.Join(fmt.Errorf("what go test says cannot be read: %w", err), command.Process.Kill(), command.Wait())
		}
		if e.ends() && e.Test != "" && !strings.Contains(e.Test, "/") {
			fmt.Fprintf(out, "  %-4s %s %.1f s\n", e.Action, e.Test, e.Elapsed)
		}
		each(e)
	}
	err = command.Wait()
	if _, failed := errors.AsType[*exec.ExitError](err); failed && ctx.Err() == nil {
		return nil // the events say what failed
	}
	return errors.Join(err, ctx.Err())
}

// ends tells whether a test or a package has ended.
func (e event) ends() bool { return e.Action == "pass" || e.Action == "fail" || e.Action == "skip" }
