//go:build linux

package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
)

// talkative are the flags by which castle runs the tools with all that they can say.
func (w *world) talkative() []string {
	w.t.Helper()
	var flags []string
	for flag, program := range map[string]string{"--terragrunt-program": "terragrunt", "--tofu-program": "tofu"} {
		file := filepath.Join(w.folder, "talkative-"+program)
		script := fmt.Sprintf("#!/bin/sh\nTF_LOG=TRACE TG_LOG_LEVEL=trace exec %s \"$@\"\n", filepath.Join(w.kit.path, program))
		if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
			w.t.Fatal(err)
		}
		flags = append(flags, flag+"="+file)
	}
	return flags
}

// TestNothingLeaksWhereToolsTellAll: OpenTofu, its providers and Terragrunt trace what they do, and programs die with their stacks on the screen.
func TestNothingLeaksWhereToolsTellAll(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "none", "0")
	w.on()
	verbs := w.talkative()
	call := func(args ...string) *called {
		c := w.start(w.live, []string{"GOTRACEBACK=all"}, append(args, verbs...)...)
		c.wait(patience)
		return c
	}

	// A Go program that is told to quit prints all its stacks: castle's, the tools' and the providers'.
	tell.Fault(t, "the tools trace all, and a create dies with all stacks on the screen")
	dying := w.start(w.live, []string{"GOTRACEBACK=all"}, append([]string{"create"}, verbs...)...)
	w.hasVMs(1)
	for _, pid := range append(descendants(dying.command.Process.Pid), dying.command.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGQUIT)
	}
	dying.wait(2 * time.Minute)
	if !strings.Contains(dying.stderr.String(), "goroutine ") {
		t.Errorf("castle died without its stacks:\n%s", dying.stderr.String())
	}

	create := w.start(w.live, nil, append([]string{"create"}, verbs...)...)
	key := create.overhear()
	create.wait(patience)
	create.succeeds()
	for _, layer := range []string{"secrets", "platform", "engine", "networking", "storage", "gitops"} {
		if log := w.toolLog(layer); !strings.Contains(log, "[TRACE]") {
			t.Errorf("the layer %s traces nothing:\n%s", layer, log[:min(len(log), 2000)])
		}
	}
	for _, format := range []string{"text", "json"} {
		call("plan", "--format="+format).succeeds()
	}
	for _, command := range []string{"status", "state-list", "secrets-list", "secrets-check"} {
		w.castle(command, "--format=json").succeeds()
	}
	call("destroy", "--confirm=sandbox").succeeds()
	w.leaksNothing(key)
}
