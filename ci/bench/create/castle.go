//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tazlab.net/castle/ci/cluster/timeline"
)

// outcome is one command on a cluster.
type outcome struct {
	Wall     time.Duration // of the whole command, start of the process to its end
	Own      time.Duration // processor time of the command and all that it started
	World    time.Duration // processor time of the world meanwhile
	Began    time.Time
	Timeline timeline.Timeline
	Trace    []line // of one whose output's times are noted
	folder   string
}

// way is how Terragrunt is run.
type way int

const (
	plain    way = iota // as castle runs it
	recorded            // the same, every line of the output with its time
)

// castle runs a command of castle on the world's cluster.
func (w *world) castle(ctx context.Context, how way, args ...string) (*outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, w.shop.slack)
	defer cancel()
	age, err := os.ReadFile(filepath.Join(w.cluster, "age.key"))
	if err != nil {
		return nil, err
	}
	path, trace := w.shop.path, ""
	if how != plain || len(w.shop.variables) > 0 {
		trace = filepath.Join(w.dir, fmt.Sprintf("trace-%d.jsonl", time.Now().UnixNano()))
		if path, err = w.player(trace); err != nil {
			return nil, err
		}
	}
	// The paths are full ones: what is in PATH is for the hooks.
	args = append([]string{"--net=/proc/" + fmt.Sprint(w.process.Process.Pid) + "/ns/net", filepath.Join(w.shop.path, "castle-cluster")}, args...)
	args = append(args, "--folder="+w.cluster, "--layers="+filepath.Join(w.dir, "terragrunt"), "--state="+w.state, "--charts="+w.shop.charts,
		"--terragrunt-program="+firstIn(path, "terragrunt"), "--tofu-program="+filepath.Join(w.shop.path, "tofu"))
	if w.scaled {
		args = append(args, "--scaled")
	}
	command := exec.CommandContext(ctx, "nsenter", args...)
	command.Dir = w.shop.root
	command.Env = []string{"PATH=" + path + ":" + os.Getenv("PATH"), "SOPS_AGE_KEY=" + string(age), "TMPDIR=" + w.shop.home,
		"HTTP_PROXY=" + proxyURL, "HTTPS_PROXY=" + proxyURL}
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = worldEnd

	before := w.cpu()
	o := &outcome{Began: time.Now()}
	err = command.Run()
	o.Wall = time.Since(o.Began)
	o.World = w.cpu() - before
	if command.ProcessState != nil {
		o.Own = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	if err != nil {
		return nil, fmt.Errorf("castle-cluster %s: %w\n%s", args[2], err, out.Bytes())
	}
	if o.folder, err = w.lastRun(); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(o.folder, "timeline.json"))
	if err == nil {
		err = json.Unmarshal(data, &o.Timeline)
	}
	if err == nil && trace != "" {
		o.Trace, err = readTrace(trace)
	}
	return o, err
}

func (w *world) create(ctx context.Context, how way) (*outcome, error) {
	return w.castle(ctx, how, "create")
}

func (w *world) destroy(ctx context.Context, how way) (*outcome, error) {
	return w.castle(ctx, how, "destroy", "--confirm=sandbox")
}

func (w *world) lastRun() (string, error) {
	runs, err := filepath.Glob(filepath.Join(w.state, "runs", "*"))
	if err != nil || len(runs) == 0 {
		return "", fmt.Errorf("castle left no record of a run in %s", w.state)
	}
	return runs[len(runs)-1], nil
}

// player writes the small program that stands before Terragrunt, and gives the PATH in which it does.
func (w *world) player(trace string) (string, error) {
	folder, err := os.MkdirTemp(w.dir, "player-*")
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(settings{Terragrunt: filepath.Join(w.shop.path, "terragrunt"), Trace: trace, Variables: w.shop.variables})
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "settings.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return "", err
	}
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' play '%s' \"$@\"\n", w.shop.self, file)
	return folder + ":" + w.shop.path, os.WriteFile(filepath.Join(folder, "terragrunt"), []byte(text), 0o755)
}

// firstIn is the program of that name in the first folder of a PATH that has it.
func firstIn(path, name string) string {
	for folder := range strings.SplitSeq(path, ":") {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return filepath.Join(folder, name)
		}
	}
	return name
}
